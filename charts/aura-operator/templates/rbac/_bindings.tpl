{{/* Gives a component the ClusterRole of its name where agents run. Call with (dict "root" $ "role" … "account" …). */}}
{{- define "aura.bindings" -}}
{{- $root := .root }}
{{- $role := .role }}
{{- $account := .account }}
{{- if $root.Values.scope.clusterWide }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $role }}
  labels:
    {{- include "aura.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $role }}
subjects:
  - kind: ServiceAccount
    namespace: {{ $root.Release.Namespace }}
    name: {{ $account }}
{{- else }}
{{- range include "aura.namespaces" $root | fromJsonArray }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $role }}
  namespace: {{ . }}
  labels:
    {{- include "aura.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $role }}
subjects:
  - kind: ServiceAccount
    namespace: {{ $root.Release.Namespace }}
    name: {{ $account }}
{{- end }}
{{- end }}
{{- end }}
