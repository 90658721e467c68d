{{- define "assent.labels" -}}
app.kubernetes.io/name: assent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "assent.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What every pod has: no token of the cluster, no rights, and no variables of other services. */}}
{{- define "assent.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "assent.container" -}}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}
