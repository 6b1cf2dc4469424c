{{/*
CEL that several policies share. Two questions are kept apart:
"operates" asks RBAC for the custom verb `operate`, always in the operator's own namespace, so that `*` in a tenant's
namespace doesn't include it; cluster admins have it. "accounts" are the operator's own service accounts by name, and
nobody else: a name that they write for somebody is taken as it is.
*/}}
{{- define "aura.cel.operates" -}}
authorizer.group('aura.mezmo.com').resource('auratasks').namespace('{{ .Release.Namespace }}').check('operate').allowed()
{{- end }}

{{- define "aura.cel.accounts" -}}
['system:serviceaccount:{{ .Release.Namespace }}:{{ .Values.controller.serviceAccount.name }}', 'system:serviceaccount:{{ .Release.Namespace }}:{{ .Values.worker.serviceAccount.name }}']
{{- end }}

{{- define "aura.cel.restorers" -}}
[{{ range $i, $user := .Values.admission.restorers }}{{ if $i }}, {{ end }}'{{ $user }}'{{ end }}]
{{- end }}

{{/* Garbage collection and the end of a namespace. Without this nothing that the operator owns would ever be collected. */}}
{{- define "aura.cel.collects" -}}
(request.userInfo.username == 'system:kube-controller-manager' || request.userInfo.username.startsWith('system:serviceaccount:kube-system:'))
{{- end }}

{{/* Kept at uninstall: without the policies votes could be forged on approvals that are still there. */}}
{{- define "aura.policy.metadata" -}}
labels:
  {{- include "aura.labels" . | nindent 2 }}
annotations:
  helm.sh/resource-policy: keep
{{- end }}
