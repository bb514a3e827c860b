{{- define "fairlead.labels" -}}
app.kubernetes.io/name: fairlead
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.extraLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "fairlead.mirrored" -}}
{{- if .mirror }}{{ trimSuffix "/" .mirror }}/{{ regexReplaceAll "^docker.io/" .image "" }}{{ else }}{{ .image }}{{ end -}}
{{- end -}}

{{- define "fairlead.image" -}}
{{- $image := printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- include "fairlead.mirrored" (dict "mirror" .Values.image.mirror "image" $image) -}}
{{- end -}}

{{- define "fairlead.databaseSecret" -}}
{{- if .Values.database.existingSecret }}{{ .Values.database.existingSecret }}{{ else if .Values.database.trial.enabled }}fairlead-postgresql{{ end -}}
{{- end -}}

{{- define "fairlead.tlsSecret" -}}
{{- if .Values.tls.existingSecret }}{{ .Values.tls.existingSecret }}{{ else if .Values.tls.certManager.enabled }}fairlead-tls{{ end -}}
{{- end -}}

{{- define "fairlead.scheme" -}}
{{- if include "fairlead.tlsSecret" . }}https{{ else }}http{{ end -}}
{{- end -}}

{{/* The flags of single sign-on; browsers come back to the host of the ingress unless another URL is given. */}}
{{- define "fairlead.signOn" -}}
{{- with .Values.oidc }}
{{- if .issuer }}
- --oidc-issuer={{ .issuer }}
- --oidc-client-id={{ .clientId }}
{{- if .existingSecret }}
- --oidc-client-secret-file=/sign-on/client-secret
{{- end }}
{{- with .scopes }}
- {{ printf "--oidc-scopes=%s" (join " " .) | quote }}
{{- end }}
- --oidc-username-claim={{ .usernameClaim }}
- --oidc-groups-claim={{ .groupsClaim }}
{{- range .domains }}
- --oidc-domain={{ . }}
{{- end }}
{{- range .audiences }}
- --oidc-audience={{ . }}
{{- end }}
{{- if .caConfigMap }}
- --oidc-ca-file=/sign-on-authorities/ca.crt
{{- end }}
- {{ printf "--oidc-name=%s" .name | quote }}
{{- if .publicUrl }}
- --public-url={{ .publicUrl }}
{{- else if $.Values.ingress.enabled }}
- --public-url={{ ternary "https" "http" (ne $.Values.ingress.tlsSecret "") }}://{{ $.Values.ingress.host }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* What cannot work is refused before anything is installed. */}}
{{- define "fairlead.check" -}}
{{- if and (gt (int .Values.replicas) 1) (not (include "fairlead.databaseSecret" .)) }}
{{- fail "replicas: more than one server needs PostgreSQL: set database.existingSecret" }}
{{- end }}
{{- if and .Values.webhook.enabled (not (include "fairlead.tlsSecret" .)) }}
{{- fail "webhook.enabled: the API server asks by HTTPS only: set tls.existingSecret or tls.certManager.enabled" }}
{{- end }}
{{- if and .Values.webhook.enabled .Values.tls.existingSecret (not .Values.webhook.caBundle) }}
{{- fail "webhook.caBundle: give the authority of tls.existingSecret, in PEM" }}
{{- end }}
{{- if and .Values.tls.certManager.enabled (not .Values.tls.certManager.issuerRef) }}
{{- fail "tls.certManager.issuerRef: name the issuer" }}
{{- end }}
{{- if and .Values.oidc.issuer (not .Values.oidc.clientId) }}
{{- fail "oidc.clientId: name the client that the provider has for this server" }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}
{{- fail "ingress.host: give the host of the API" }}
{{- end }}
{{- if and .Values.gateway.enabled (not .Values.gateway.parentRefs) }}
{{- fail "gateway.parentRefs: name the Gateway" }}
{{- end }}
{{- end -}}
