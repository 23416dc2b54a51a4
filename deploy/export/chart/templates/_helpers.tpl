{{/* Labels of everything. */}}
{{- define "weft.labels" -}}
app.kubernetes.io/name: weft
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Labels by which the pods of a worker are found: (dict "root" $ "name" NAME). */}}
{{- define "weft.selector" -}}
app.kubernetes.io/name: weft
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{/* Name of what belongs to a worker. */}}
{{- define "weft.fullname" -}}
{{- printf "%s-%s" .root.Release.Name .name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "weft.image" -}}
{{- printf "%s:%s" .Values.image.repository .Values.image.tag }}
{{- end }}

{{- define "weft.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65534
runAsGroup: 65534
fsGroup: 65534
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "weft.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Arguments by which the bus is reached. */}}
{{- define "weft.busArguments" -}}
- {{ printf "--bus=%s" .Values.bus.url | quote }}
- --certs=/etc/weft/certs
{{- if .Values.bus.credentialsSecret }}
- --bus-credentials=/etc/weft/bus/bus.creds
{{- end }}
{{- end }}

{{- define "weft.busMount" -}}
{{- if .Values.bus.credentialsSecret }}
- {name: bus, mountPath: /etc/weft/bus, readOnly: true}
{{- end }}
{{- end }}

{{- define "weft.busVolume" -}}
{{- with .Values.bus.credentialsSecret }}
- name: bus
  secret: {secretName: {{ . | quote }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{/* Volume with the certificates of processes: (dict "root" $ "processes" LIST). */}}
{{- define "weft.certificates" -}}
- name: certs
  projected:
    defaultMode: 0440
    sources:
      {{- range $i, $process := .processes }}
      - secret:
          name: {{ printf "%s%s" $.root.Values.certificates.secretPrefix $process | quote }}
          items:
            - {key: tls.crt, path: {{ printf "%s.crt" $process }}}
            - {key: tls.key, path: {{ printf "%s.key" $process }}}
            {{- if eq $i 0 }}
            - {key: ca.crt, path: ca.crt}
            {{- end }}
      {{- end }}
{{- end }}

{{/* Pod of a worker: (dict "root" $ "name" NAME "worker" VALUES). */}}
{{- define "weft.pod" -}}
{{- $root := .root }}{{ $v := $root.Values }}{{ $w := .worker }}
metadata:
  labels:
    {{- include "weft.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .name }}
    weft/partition: {{ $w.partition | default "all" }}
  annotations:
    checksum/settings: {{ toYaml $w | sha256sum }}
    {{- if $w.gateway }}
    prometheus.io/scrape: "true"
    prometheus.io/path: /metrics
    prometheus.io/port: {{ (index $w.ports 0).port | quote }}
    {{- end }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: 30
  securityContext:
    {{- include "weft.podSecurity" $root | nindent 4 }}
  {{- with $v.imagePullSecrets }}
  imagePullSecrets: {{ toJson . }}
  {{- end }}
  {{- with index $v.priorityClasses $w.class }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  {{- with $v.nodeSelector }}
  nodeSelector: {{ toJson . }}
  {{- end }}
  {{- with $v.tolerations }}
  tolerations: {{ toJson . }}
  {{- end }}
  {{- if gt (len $w.processes) 1 }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "weft.selector" . | nindent 10 }}
  {{- end }}
  containers:
    - name: weft
      image: {{ include "weft.image" $root | quote }}
      imagePullPolicy: {{ $v.image.pullPolicy }}
      args:
        - worker
        {{- if gt (len $w.processes) 1 }}
        - --process={{ .name }}-$(WEFT_REPLICA)
        {{- else }}
        - --process={{ first $w.processes }}
        {{- end }}
        - --listen=$(WEFT_ADDRESS):{{ $v.workerPort }}
        {{- include "weft.busArguments" $root | nindent 8 }}
        - --log-level={{ $v.logLevel }}
        {{- range $w.set }}
        - {{ printf "--set=%s" . | quote }}
        {{- end }}
        {{- if $w.gateway }}
        - --set=gateway.token=$(WEFT_GATEWAY_TOKEN)
        {{- end }}
      env:
        - name: WEFT_ADDRESS
          valueFrom: {fieldRef: {fieldPath: status.podIP}}
        {{- if gt (len $w.processes) 1 }}
        - name: WEFT_REPLICA
          valueFrom: {fieldRef: {fieldPath: "metadata.labels['apps.kubernetes.io/pod-index']"}}
        {{- end }}
        {{- if $w.gateway }}
        - name: WEFT_GATEWAY_TOKEN
          valueFrom:
            secretKeyRef: {name: {{ $v.gatewayToken.secret | quote }}, key: {{ $v.gatewayToken.key | quote }}}
        {{- end }}
        {{- range $name, $value := $w.env }}
        - {name: {{ $name }}, value: {{ $value | quote }}}
        {{- end }}
      ports:
        - {name: worker, containerPort: {{ $v.workerPort }}}
        {{- range $w.ports }}
        - {name: {{ .name }}, containerPort: {{ .port }}}
        {{- end }}
      resources: {{ toJson (mergeOverwrite (deepCopy $v.resources) $w.resources) }}
      startupProbe:
        tcpSocket: {port: worker}
        periodSeconds: 1
        failureThreshold: 60
      livenessProbe:
        tcpSocket: {port: worker}
        periodSeconds: 5
        failureThreshold: 3
      readinessProbe:
        {{- if $w.gateway }}
        httpGet: {path: /healthz, port: gateway}
        {{- else if $w.switches }}
        tcpSocket: {port: openflow}
        {{- else }}
        tcpSocket: {port: worker}
        {{- end }}
        periodSeconds: 2
      securityContext:
        {{- include "weft.containerSecurity" $root | nindent 8 }}
      volumeMounts:
        - {name: certs, mountPath: /etc/weft/certs, readOnly: true}
        {{- include "weft.busMount" $root | nindent 8 }}
  volumes:
    {{- include "weft.certificates" (dict "root" $root "processes" $w.processes) | nindent 4 }}
    {{- include "weft.busVolume" $root | nindent 4 }}
{{- end }}
