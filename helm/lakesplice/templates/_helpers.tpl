{{- define "lakesplice.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "lakesplice.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "lakesplice.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "lakesplice.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "lakesplice.selector" -}}
app.kubernetes.io/name: {{ include "lakesplice.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "lakesplice.labels" -}}
{{ include "lakesplice.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "lakesplice.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "lakesplice.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "lakesplice.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- define "lakesplice.claim" -}}
{{- default (include "lakesplice.fullname" .) .Values.persistence.existingClaim }}
{{- end }}

{{- /* Where the metrics page is; the service's own default. */}}
{{- define "lakesplice.port" -}}
{{- dig "metrics" "port" 9464 .Values.settings | int }}
{{- end }}

{{- /* A duration as the service reads it, as whole seconds, rounded up: 90, "90", 1m30s, 500ms. */}}
{{- define "lakesplice.seconds" -}}
{{- $text := toString . | nospace }}
{{- $units := dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 "d" 86400.0 }}
{{- $total := 0.0 }}
{{- if regexMatch "^[0-9.]+$" $text }}
{{- $total = float64 $text }}
{{- else }}
{{- range regexFindAll "[0-9.]+(ms|s|m|h|d)" $text -1 }}
{{- $unit := regexFind "[a-z]+$" . }}
{{- $total = addf $total (mulf (float64 (trimSuffix $unit .)) (get $units $unit)) }}
{{- end }}
{{- end }}
{{- ceil $total | int }}
{{- end }}

{{- /* What the service may need to stop in order: its batch, an answer of Kafka, and the rest. */}}
{{- define "lakesplice.graceSeconds" -}}
{{- $stop := include "lakesplice.seconds" (dig "stop_timeout" "1m" .Values.settings) | int }}
{{- $answer := include "lakesplice.seconds" (dig "kafka" "request_timeout_seconds" "30s" .Values.settings) | int }}
{{- add $stop $answer .Values.stopMarginSeconds }}
{{- end }}

{{- /* The configuration file: the settings, and the page for probes and scrapes. */}}
{{- define "lakesplice.configuration" -}}
{{- $page := dict "enabled" true "host" "0.0.0.0" "port" (include "lakesplice.port" . | int) }}
{{- $decided := dict "metrics" $page }}
{{- if .Values.rbac.executorPods }}
{{- $_ := set $decided "spark" (dict "options" (dict "spark.driver.bindAddress" "0.0.0.0")) }}
{{- end }}
{{- merge $decided (deepCopy .Values.settings) | toYaml }}
{{- end }}

{{- /* What values can't be: each with what to do. */}}
{{- define "lakesplice.check" -}}
{{- $values := .Values }}
{{- $variables := dict }}
{{- range $values.extraEnv }}{{ $_ := set $variables .name true }}{{ end }}
{{- range $name, $ref := $values.secretEnv }}{{ $_ := set $variables $name true }}{{ end }}
{{- range $name := list "bootstrap_servers" "topic_pattern" }}
{{- if not (or (dig "kafka" $name "" $values.settings) (hasKey $variables (printf "LAKESPLICE_KAFKA__%s" (upper $name))) $values.extraEnvFrom) }}
{{- fail (printf "settings.kafka.%s must be given" $name) }}
{{- end }}
{{- end }}
{{- $root := dig "lake" "root" "" $values.settings | trimPrefix "file://" }}
{{- if contains "://" $root }}
{{- if $values.persistence.enabled }}
{{- fail "settings.lake.root is in an object store: set persistence.enabled to false" }}
{{- end }}
{{- else if $values.persistence.enabled }}
{{- if not (hasPrefix (printf "%s/" (trimSuffix "/" $values.persistence.mountPath)) (printf "%s/" $root)) }}
{{- fail "settings.lake.root must be in persistence.mountPath, or the lake would be lost with the pod" }}
{{- end }}
{{- else if not $values.extraVolumeMounts }}
{{- fail "settings.lake.root is a folder: enable persistence or mount a volume there (extraVolumeMounts), or the lake would be lost with the pod" }}
{{- end }}
{{- if and (gt (int $values.replicas) 1) $values.persistence.enabled (not $values.persistence.existingClaim) (not (has "ReadWriteMany" $values.persistence.accessModes)) }}
{{- fail "a second replica needs a lake that both can mount: persistence.accessModes [ReadWriteMany], an existingClaim, or an object store" }}
{{- end }}
{{- end }}
