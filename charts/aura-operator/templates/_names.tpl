{{- define "aura.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The namespaces in which agents run, as a JSON list. */}}
{{- define "aura.namespaces" -}}
{{- .Values.scope.namespaces | default (list .Release.Namespace) | uniq | toJson -}}
{{- end }}

{{/*
"true" where the API server files votes and stamps names. Rendered without a server (helm template), the version decides:
on a server that is older than that version the install then fails, instead of going without in silence.
*/}}
{{- define "aura.mutating" -}}
{{- $served := or (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy") (semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version) -}}
{{- if or (eq .Values.admission.mode "mutating") (and (eq .Values.admission.mode "auto") $served) -}}
true
{{- end -}}
{{- end }}
