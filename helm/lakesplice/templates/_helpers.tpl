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

{{- /* A duration as the service reads it, in seconds: 90, "90", 1m30s, 500ms. */}}
{{- define "lakesplice.exactSeconds" -}}
{{- $text := kindIs "string" . | ternary . (printf "%f" (float64 .)) | toString | nospace }}
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
{{- $total }}
{{- end }}

{{- /* A duration as whole seconds, rounded up. */}}
{{- define "lakesplice.seconds" -}}
{{- include "lakesplice.exactSeconds" . | float64 | ceil | int }}
{{- end }}

{{- /* A threshold as PromQL reads it, as `lakesplice rules` writes it. */}}
{{- define "lakesplice.promNumber" -}}
{{- $value := round . 9 }}
{{- if eq $value (floor $value) }}{{ int64 $value }}{{ else }}{{ printf "%.6g" $value }}{{ end }}
{{- end }}

{{- /* Seconds as a duration of PromQL, rounded up to whole ones. */}}
{{- define "lakesplice.promDuration" -}}
{{- $whole := round . 9 | ceil | int64 }}
{{- if not $whole }}0s
{{- else if not (mod $whole 86400) }}{{ div $whole 86400 }}d
{{- else if not (mod $whole 3600) }}{{ div $whole 3600 }}h
{{- else if not (mod $whole 60) }}{{ div $whole 60 }}m
{{- else }}{{ $whole }}s
{{- end }}
{{- end }}

{{- /* What the service may need to stop in order: its batch, an answer of Kafka, and the rest. */}}
{{- define "lakesplice.graceSeconds" -}}
{{- $stop := include "lakesplice.seconds" (dig "stop_timeout" "1m" .Values.settings) | int }}
{{- $answer := include "lakesplice.seconds" (dig "kafka" "request_timeout_seconds" "30s" .Values.settings) | int }}
{{- add $stop $answer .Values.stopMarginSeconds }}
{{- end }}

{{- /* The variables that driver and executors share. */}}
{{- define "lakesplice.environment" -}}
{{- range $name, $ref := .Values.secretEnv }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $ref.name }}
      key: {{ $ref.key }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* What driver and executors mount alike. */}}
{{- define "lakesplice.volumeMounts" -}}
- name: scratch
  mountPath: /tmp
{{- if .Values.persistence.enabled }}
- name: lake
  mountPath: {{ .Values.persistence.mountPath }}
{{- end }}
{{- range $index, $secret := .Values.secretFiles }}
- name: secret-{{ $index }}
  mountPath: {{ $secret.mountPath }}
  readOnly: true
{{- end }}
{{- if .Values.rbac.executorPods }}
- name: executors
  mountPath: /etc/lakesplice/executors
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "lakesplice.volumes" -}}
- name: scratch
  {{- if or .Values.scratch.sizeLimit .Values.scratch.medium }}
  emptyDir:
    {{- with .Values.scratch.sizeLimit }}
    sizeLimit: {{ . }}
    {{- end }}
    {{- with .Values.scratch.medium }}
    medium: {{ . }}
    {{- end }}
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- if .Values.persistence.enabled }}
- name: lake
  persistentVolumeClaim:
    claimName: {{ include "lakesplice.claim" . }}
{{- end }}
{{- range $index, $secret := .Values.secretFiles }}
- name: secret-{{ $index }}
  secret:
    secretName: {{ $secret.name }}
    # Readable by the pod's group.
    defaultMode: 0440
{{- end }}
{{- if .Values.rbac.executorPods }}
- name: executors
  secret:
    secretName: {{ include "lakesplice.fullname" . }}
    defaultMode: 0440
    # The configuration isn't the executors' business.
    items:
      - {key: executor-pod.yaml, path: pod.yaml}
      - {key: executor-secret, path: secret}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "lakesplice.executorSelector" -}}
app.kubernetes.io/name: {{ include "lakesplice.name" . }}-executor
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* What executors prove with that they belong to the driver; an upgrade keeps it. */}}
{{- define "lakesplice.executorSecret" -}}
{{- $there := lookup "v1" "Secret" .Release.Namespace (include "lakesplice.fullname" .) | default dict }}
{{- $kept := get (get $there "data" | default dict) "executor-secret" }}
{{- if $kept }}{{ $kept | b64dec }}{{ else }}{{ randAlphaNum 64 }}{{ end }}
{{- end }}

{{- /* The pod that Spark makes an executor of: it runs the driver's own image, with its variables and volumes. */}}
{{- define "lakesplice.executorPod" -}}
apiVersion: v1
kind: Pod
metadata:
  labels:
    {{- include "lakesplice.executorSelector" . | nindent 4 }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  containers:
    - name: executor
      image: {{ include "lakesplice.image" . | quote }}
      command: [/usr/bin/tini, --, /opt/lakesplice/bin/python, -m, lakesplice.spark.executor_pod]
      env:
        # Spark's executors read the file of the secret only once they have a connection.
        - name: _SPARK_AUTH_SECRET
          valueFrom:
            secretKeyRef:
              name: {{ include "lakesplice.fullname" . }}
              key: executor-secret-encoded
        {{- with include "lakesplice.environment" . | trim }}
        {{- . | nindent 8 }}
        {{- end }}
      {{- with .Values.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts:
        {{- include "lakesplice.volumeMounts" . | trim | nindent 8 }}
  volumes:
    {{- include "lakesplice.volumes" . | trim | nindent 4 }}
  {{- with .Values.executors.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.executors.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.executors.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.executors.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* The configuration file: what is decided here, the settings, and what they may leave out. */}}
{{- define "lakesplice.configuration" -}}
{{- $page := dict "enabled" true "host" "0.0.0.0" "port" (include "lakesplice.port" . | int) }}
{{- $decided := dict "metrics" $page }}
{{- $left := dict }}
{{- if .Values.rbac.executorPods }}
{{- $_ := set $decided "spark" (dict "options" (dict "spark.driver.bindAddress" "0.0.0.0")) }}
{{- $options := dict
  "spark.kubernetes.namespace" .Release.Namespace
  "spark.kubernetes.container.image" (include "lakesplice.image" .)
  "spark.kubernetes.container.image.pullPolicy" .Values.image.pullPolicy
  "spark.kubernetes.executor.podTemplateFile" "/etc/lakesplice/executors/pod.yaml"
  "spark.kubernetes.executor.podTemplateContainerName" "executor"
  "spark.authenticate.secret.file" "/etc/lakesplice/executors/secret"
  "spark.kubernetes.driver.ownPersistentVolumeClaim" "false"
  "spark.kubernetes.driver.reusePersistentVolumeClaim" "false"
  "spark.pyspark.python" "/opt/lakesplice/bin/python"
  "spark.driver.port" (include "lakesplice.driverPort" .)
  "spark.blockManager.port" (include "lakesplice.blockPort" .)
}}
{{- $_ := set $left "spark" (dict "options" $options) }}
{{- end }}
{{- merge $decided (deepCopy .Values.settings) $left | toYaml }}
{{- end }}

{{- /* Ports of the driver that executors connect to, and of each other. */}}
{{- define "lakesplice.driverPort" -}}7078{{- end }}
{{- define "lakesplice.blockPort" -}}7079{{- end }}

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
{{- $elsewhere := hasPrefix "k8s://" (dig "spark" "master" "" $values.settings) }}
{{- if and $values.rbac.executorPods (not $elsewhere) }}
{{- fail "rbac.executorPods is for executors in pods: set settings.spark.master to k8s://https://kubernetes.default.svc, or rbac.executorPods to false" }}
{{- else if and $elsewhere (not $values.rbac.executorPods) }}
{{- fail "settings.spark.master starts executors in pods: set rbac.executorPods to true" }}
{{- end }}
{{- if and (gt (int $values.replicas) 1) $values.persistence.enabled (not $values.persistence.existingClaim) (not (has "ReadWriteMany" $values.persistence.accessModes)) }}
{{- fail "a second replica needs a lake that both can mount: persistence.accessModes [ReadWriteMany], an existingClaim, or an object store" }}
{{- end }}
{{- end }}
