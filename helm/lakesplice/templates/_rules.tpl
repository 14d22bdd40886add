{{- /* Written by `PYTHONPATH=tools:service python -m chart_rules`. A setting is looked for in the
environment first, as the service does. */}}
{{- define "lakesplice.rules" -}}
{{- $given := dict }}
{{- range .Values.extraEnv }}{{ $_ := set $given .name (get . "value") }}{{ end }}
{{- $trigger := include "lakesplice.exactSeconds" (get $given "LAKESPLICE_TRIGGER" | default (dig "trigger" "5m" .Values.settings)) | float64 }}
{{- $lease := include "lakesplice.exactSeconds" (get $given "LAKESPLICE_LEASE" | default (dig "lease" "10s" .Values.settings)) | float64 }}
{{- $age_max := include "lakesplice.exactSeconds" (get $given "LAKESPLICE_COMPACTION__AGE_MAX" | default (dig "compaction" "age_max" "30m" .Values.settings)) | float64 }}
{{- $back_pressure_deltas := get $given "LAKESPLICE_COMPACTION__BACK_PRESSURE_DELTAS" | default (dig "compaction" "back_pressure_deltas" 200 .Values.settings) | toString | replace "_" "" | float64 }}
{{- $runs_max := get $given "LAKESPLICE_INDEX__RUNS_MAX" | default (dig "index" "runs_max" 8 .Values.settings) | toString | replace "_" "" | float64 }}
{{- $checkpoint_every := get $given "LAKESPLICE_LOG__CHECKPOINT_EVERY" | default (dig "log" "checkpoint_every" 10 .Values.settings) | toString | replace "_" "" | float64 }}
{{- $merge_files_max := get $given "LAKESPLICE_MERGE__FILES_MAX" | default (dig "merge" "files_max" 16 .Values.settings) | toString | replace "_" "" | float64 }}
{{- $vacuum_every := include "lakesplice.exactSeconds" (get $given "LAKESPLICE_VACUUM__EVERY" | default (dig "vacuum" "every" "1h" .Values.settings)) | float64 }}
{{- $objective := get $given "LAKESPLICE_ALERTS__OBJECTIVE" | default (dig "alerts" "objective" 0.99 .Values.settings) | toString | replace "_" "" | float64 }}
{{- $runbooks := get $given "LAKESPLICE_ALERTS__RUNBOOKS" | default (dig "alerts" "runbooks" "docs/operations.md" .Values.settings) }}
groups:
  - name: lakesplice
    rules:
      - alert: LakespliceDown
        expr: >-
          absent(last_over_time(lakesplice_build_info[1d]))
          or (group by (lake, namespace, job) (last_over_time(lakesplice_build_info[1d]))
          unless group by (lake, namespace, job) (lakesplice_build_info))
        for: 5m
        labels: {severity: critical}
        annotations:
          summary: "No metrics page of {{ "{{" }} or $labels.lake $labels.job \"Lakesplice\" {{ "}}" }} can be scraped."
          section: "/healthz is not 200"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#healthz-is-not-200"
      - alert: LakespliceNoTopics
        expr: >-
          lakesplice_driver_standby == 0
          unless on (lake, namespace, job, instance) lakesplice_topic_state
        for: 15m
        labels: {severity: warning}
        annotations:
          summary: "The service of {{ "{{" }} $labels.instance {{ "}}" }} finds no topic to read."
          section: "No series of lakesplice_topic_state"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#no-series-of-lakesplice_topic_state"
      - alert: LakespliceQueryRestarts
        expr: increase(lakesplice_query_restarts_total{reason="error"}[1h]) > 1
        labels: {severity: warning}
        annotations:
          summary: "The query failed and was restarted more than once within an hour."
          section: "lakesplice_query_restarts_total rises"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_query_restarts_total-rises"
      - alert: LakespliceThreadErrors
        expr: increase(lakesplice_thread_errors_total[1h]) > 1
        labels: {severity: warning}
        annotations:
          summary: "The thread {{ "{{" }} $labels.thread {{ "}}" }} of the service met more than one error within an hour that nobody expected."
          section: "lakesplice_thread_errors_total rises"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_thread_errors_total-rises"
      - alert: LakespliceClockDiffers
        expr: abs(lakesplice_clock_difference_seconds) > 60
        for: 2m
        labels: {severity: warning}
        annotations:
          summary: "The clocks of the service and of the lake's store differ by {{ "{{" }} $value | humanizeDuration {{ "}}" }}."
          section: "lakesplice_clock_difference_seconds is far from 0"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_clock_difference_seconds-is-far-from-0"
      - alert: LakespliceTwoDrivers
        expr: >-
          count by (lake, namespace, job) (
            count_values by (lake, namespace, job) ("generation", lakesplice_driver_generation > 0)
          ) > 1
        for: 2m
        labels: {severity: critical}
        annotations:
          summary: "Two services act as the driver of one lake."
          section: "lakesplice_driver_generation differs between two pages"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_driver_generation-differs-between-two-pages"
      - alert: LakespliceNobodyDrives
        expr: min by (lake, namespace, job) (lakesplice_driver_standby) == 1
        for: {{ include "lakesplice.promDuration" (maxf 300 (mulf 3 $lease)) }}
        labels: {severity: critical}
        annotations:
          summary: "Every service of {{ "{{" }} or $labels.lake $labels.job {{ "}}" }} waits for another driver of its lake."
          section: "lakesplice_driver_standby is 1 on every page"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_driver_standby-is-1-on-every-page"
      - alert: LakespliceNoBatch
        expr: lakesplice_last_batch_age_seconds > {{ include "lakesplice.promNumber" (mulf 3 (maxf 60 $trigger)) }}
        for: 1m
        labels: {severity: critical}
        annotations:
          summary: "No batch has ended for {{ "{{" }} $value | humanizeDuration {{ "}}" }}."
          section: "lakesplice_last_batch_age_seconds is well above trigger"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_last_batch_age_seconds-is-well-above-trigger"
      - alert: LakespliceBatchesTooLong
        expr: >-
          histogram_quantile(0.5, sum by (le, lake, namespace, job, instance) (
            rate(lakesplice_batch_duration_seconds_bucket{phase="whole"}[{{ include "lakesplice.promDuration" (maxf 1800 (mulf 6 (maxf 60 $trigger))) }}])
          )) >= {{ include "lakesplice.promNumber" (maxf 60 $trigger) }}
        for: 15m
        labels: {severity: warning}
        annotations:
          summary: "Half of the batches take {{ "{{" }} $value | humanizeDuration {{ "}}" }} or more."
          section: "lakesplice_batch_duration_seconds{phase=\"whole\"} is above trigger"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_batch_duration_secondsphasewhole-is-above-trigger"
      - alert: LakespliceTopicRests
        expr: lakesplice_topic_state{state="resting"} == 1
        for: 5m
        labels: {severity: warning}
        annotations:
          summary: "{{ "{{" }} $labels.topic {{ "}}" }} isn't written to its table: each attempt fails, and is retried after a pause."
          section: "lakesplice_topic_state{state=\"resting\"} is 1"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_topic_statestateresting-is-1"
      - alert: LakespliceTopicRefused
        expr: lakesplice_topic_state{state="refused"} == 1
        for: 1m
        labels: {severity: critical}
        annotations:
          summary: "{{ "{{" }} $labels.topic {{ "}}" }} matches kafka.topic_pattern but can't have a table."
          section: "lakesplice_topic_state{state=\"refused\"} is 1"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_topic_statestaterefused-is-1"
      - alert: LakespliceConnectorChangesValues
        expr: lakesplice_suspect_setting{setting!="foreign-key-cascades"} == 1
        for: 1m
        labels: {severity: warning}
        annotations:
          summary: "A setting of the connector changes values of {{ "{{" }} $labels.table {{ "}}" }}: {{ "{{" }} $labels.setting {{ "}}" }}."
          section: "lakesplice_suspect_setting is 1"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_suspect_setting-is-1"
      - alert: LakespliceConnectorSilent
        expr: lakesplice_connector_event_age_seconds{heartbeats="yes"} > 600
        for: 5m
        labels: {severity: critical}
        annotations:
          summary: "The connector {{ "{{" }} $labels.connector {{ "}}" }} has written nothing for {{ "{{" }} $value | humanizeDuration {{ "}}" }}, not even a heartbeat."
          section: "lakesplice_connector_event_age_seconds rises"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_connector_event_age_seconds-rises"
      - alert: LakespliceSourceSilent
        expr: lakesplice_connector_event_age_seconds{heartbeats="no"} > 86400
        for: 5m
        labels: {severity: warning}
        annotations:
          summary: "{{ "{{" }} $labels.connector {{ "}}" }} has sent nothing for {{ "{{" }} $value | humanizeDuration {{ "}}" }}, and it has no heartbeats."
          section: "lakesplice_connector_event_age_seconds rises"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_connector_event_age_seconds-rises"
      - alert: LakespliceLagGrows
        expr: >-
          lakesplice_kafka_consumer_lag_records > 100000
          and deriv(lakesplice_kafka_consumer_lag_records[30m]) > 0
        for: 30m
        labels: {severity: warning}
        annotations:
          summary: "{{ "{{" }} $labels.table {{ "}}" }} is {{ "{{" }} $value {{ "}}" }} records behind, and falls further behind."
          section: "lakesplice_kafka_consumer_lag_records rises"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_kafka_consumer_lag_records-rises"
      - alert: LakespliceTopicWithoutTable
        expr: >-
          lakesplice_topic_state{state="waiting"} == 1
          and on (lake, namespace, job, instance, table) lakesplice_kafka_consumer_lag_records > 0
        for: {{ include "lakesplice.promDuration" (mulf 3 (maxf 60 $trigger)) }}
        labels: {severity: warning}
        annotations:
          summary: "{{ "{{" }} $labels.topic {{ "}}" }} has records but no table yet."
          section: "lakesplice_topic_state{state=\"waiting\"} stays 1"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_topic_statestatewaiting-stays-1"
      - alert: LakespliceTableParked
        expr: lakesplice_table_parked == 1
        for: 1m
        labels: {severity: critical}
        annotations:
          summary: "{{ "{{" }} $labels.table {{ "}}" }} is parked ({{ "{{" }} $labels.code {{ "}}" }}) and takes no changes."
          section: "lakesplice_table_parked is 1"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_table_parked-is-1"
      - alert: LakespliceTableHasGap
        expr: lakesplice_gap_records > 0
        labels: {severity: warning}
        annotations:
          summary: "{{ "{{" }} $labels.table {{ "}}" }} lacks {{ "{{" }} $value {{ "}}" }} records that were passed over."
          section: "lakesplice_gap_records is above 0"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_gap_records-is-above-0"
      - alert: LakespliceTableDiffers
        expr: >-
          sum by (lake, namespace, job, instance, table) (lakesplice_differing_rows_total)
          > (sum by (lake, namespace, job, instance, table) (lakesplice_differing_rows_total offset 1d)
          or sum by (lake, namespace, job, instance, table) (lakesplice_differing_rows_total) * 0)
        labels: {severity: warning}
        annotations:
          summary: "{{ "{{" }} $labels.table {{ "}}" }} was compared with its database, and rows differ."
          section: "lakesplice_differing_rows_total rises"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_differing_rows_total-rises"
      - alert: LakespliceTableNotFresh
        expr: lakesplice_table_freshness_seconds > lakesplice_table_freshness_goal_seconds
        for: 5m
        labels: {severity: warning}
        annotations:
          summary: "The {{ "{{" }} $labels.view {{ "}}" }} view of {{ "{{" }} $labels.table {{ "}}" }} is {{ "{{" }} $value | humanizeDuration {{ "}}" }} old."
          section: "lakesplice_table_freshness_seconds is too old"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_table_freshness_seconds-is-too-old"
      - alert: LakespliceDeadLetters
        expr: >-
          sum by (lake, namespace, job, instance, table) (lakesplice_dead_letters_total)
          > (sum by (lake, namespace, job, instance, table) (lakesplice_dead_letters_total offset 15m)
          or sum by (lake, namespace, job, instance, table) (lakesplice_dead_letters_total) * 0)
        labels: {severity: warning}
        annotations:
          summary: "Records of {{ "{{" }} $labels.table {{ "}}" }} could not be decoded."
          section: "lakesplice_dead_letters_total rises"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_dead_letters_total-rises"
      - alert: LakespliceDeadLettersUnsent
        expr: >-
          sum by (lake, namespace, job, instance, table) (lakesplice_dead_letters_unsent_total)
          > (sum by (lake, namespace, job, instance, table) (lakesplice_dead_letters_unsent_total offset 15m)
          or sum by (lake, namespace, job, instance, table) (lakesplice_dead_letters_unsent_total) * 0)
        labels: {severity: warning}
        annotations:
          summary: "Dead letters of {{ "{{" }} $labels.table {{ "}}" }} could not be sent to their topic."
          section: "lakesplice_dead_letters_unsent_total rises"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_dead_letters_unsent_total-rises"
      - alert: LakespliceConflicts
        expr: >-
          sum by (lake, namespace, job, instance, table) (
            increase(lakesplice_commit_conflicts_total{reason="offsets"}[15m])
          ) > 3
        labels: {severity: critical}
        annotations:
          summary: "Another process commits to {{ "{{" }} $labels.table {{ "}}" }}."
          section: "lakesplice_commit_conflicts_total rises fast"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_commit_conflicts_total-rises-fast"
      - alert: LakespliceSourceRepeatsItself
        expr: >-
          sum by (lake, namespace, job, instance, table) (rate(lakesplice_changes_stale_total[1h]))
          > 0.5 * sum by (lake, namespace, job, instance, table) (rate(lakesplice_changes_total[1h]))
        for: 1h
        labels: {severity: info}
        annotations:
          summary: "Most changes of {{ "{{" }} $labels.table {{ "}}" }} are older than the rows they change."
          section: "lakesplice_changes_stale_total grows steadily"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_changes_stale_total-grows-steadily"
      - alert: LakespliceChangesMissing
        expr: >-
          sum by (lake, namespace, job, instance, table) (lakesplice_changes_unlinked_total)
          > (sum by (lake, namespace, job, instance, table) (lakesplice_changes_unlinked_total offset 1h)
          or sum by (lake, namespace, job, instance, table) (lakesplice_changes_unlinked_total) * 0)
        labels: {severity: warning}
        annotations:
          summary: "Changes of {{ "{{" }} $labels.table {{ "}}" }} don't match its rows; some may be missing."
          section: "lakesplice_changes_unlinked_total rises"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_changes_unlinked_total-rises"
      - alert: LakespliceCompactionFails
        expr: increase(lakesplice_compactions_total{result="failed"}[30m]) > 0
        labels: {severity: warning}
        annotations:
          summary: "A compaction of {{ "{{" }} $labels.table {{ "}}" }} failed."
          section: "lakesplice_delta_oldest_age_seconds is above compaction.age_max, or lakesplice_delta_files nears compaction.back_pressure_deltas"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_delta_oldest_age_seconds-is-above-compactionage_max-or-lakesplice_delta_files-nears-compactionback_pressure_deltas"
      - alert: LakespliceIcebergBehind
        expr: lakesplice_iceberg_lag_seconds > 3600
        for: 10m
        labels: {severity: warning}
        annotations:
          summary: "The Iceberg mirror of {{ "{{" }} $labels.table {{ "}}" }} lacks what the table has had for {{ "{{" }} $value | humanizeDuration {{ "}}" }}."
          section: "lakesplice_iceberg_lag_seconds grows"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_iceberg_lag_seconds-grows"
      - alert: LakespliceManyOrphans
        expr: >-
          sum by (lake, namespace, job, instance) (
            increase(lakesplice_vacuumed_files_total{kind="orphan"}[1d])
          ) > 1000
        labels: {severity: warning}
        annotations:
          summary: "Many files are written and never committed."
          section: "lakesplice_vacuumed_files_total{kind=\"orphan\"} rises fast"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_vacuumed_files_totalkindorphan-rises-fast"
      - alert: LakespliceCompactionBehind
        expr: >-
          lakesplice_delta_oldest_age_seconds > {{ include "lakesplice.promNumber" (mulf 2 $age_max) }}
          or lakesplice_delta_files > {{ include "lakesplice.promNumber" (mulf 0.75 $back_pressure_deltas) }}
        for: 5m
        labels: {severity: warning}
        annotations:
          summary: "Changes of {{ "{{" }} $labels.table {{ "}}" }} wait too long for compaction."
          section: "lakesplice_delta_oldest_age_seconds is above compaction.age_max, or lakesplice_delta_files nears compaction.back_pressure_deltas"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_delta_oldest_age_seconds-is-above-compactionage_max-or-lakesplice_delta_files-nears-compactionback_pressure_deltas"
      - alert: LakespliceUpkeepFails
        expr: >-
          lakesplice_index_runs > {{ include "lakesplice.promNumber" (mulf 2 $runs_max) }}
          or lakesplice_log_tail_commits > {{ include "lakesplice.promNumber" (mulf 5 $checkpoint_every) }}
        for: 30m
        labels: {severity: warning}
        annotations:
          summary: "Maintenance of {{ "{{" }} $labels.table {{ "}}" }} (index merges, checkpoints) is behind."
          section: "lakesplice_index_runs stays above index.runs_max, or lakesplice_log_tail_commits far above log.checkpoint_every"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_index_runs-stays-above-indexruns_max-or-lakesplice_log_tail_commits-far-above-logcheckpoint_every"
      - alert: LakespliceSmallFilesStay
        expr: lakesplice_small_base_files > {{ include "lakesplice.promNumber" (mulf 3 $merge_files_max) }}
        for: 1h
        labels: {severity: info}
        annotations:
          summary: "{{ "{{" }} $labels.table {{ "}}" }} has {{ "{{" }} $value {{ "}}" }} small base files that aren't merged."
          section: "lakesplice_small_base_files stays above merge.files_max"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_small_base_files-stays-above-mergefiles_max"
      - alert: LakespliceVacuumLate
        expr: lakesplice_last_vacuum_age_seconds > {{ include "lakesplice.promNumber" (mulf 4 $vacuum_every) }}
        for: 10m
        labels: {severity: warning}
        annotations:
          summary: "{{ "{{" }} $labels.table {{ "}}" }} was last vacuumed {{ "{{" }} $value | humanizeDuration {{ "}}" }} ago."
          section: "lakesplice_last_vacuum_age_seconds is far above vacuum.every"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#lakesplice_last_vacuum_age_seconds-is-far-above-vacuumevery"
  - name: lakesplice-freshness
    interval: 1m
    rules:
      - record: lakesplice:table_late
        expr: >-
          max by (lake, namespace, job, table, view) (
            lakesplice_table_freshness_seconds > bool lakesplice_table_freshness_goal_seconds
          )
      - alert: LakespliceFreshnessBudgetBurnsFast
        expr: >-
          (sum_over_time(lakesplice:table_late[1h]) > {{ include "lakesplice.promNumber" (mulf 864 (subf 1.0 $objective)) }} and sum_over_time(lakesplice:table_late[5m]) > {{ include "lakesplice.promNumber" (mulf 72 (subf 1.0 $objective)) }})
          or (sum_over_time(lakesplice:table_late[6h]) > {{ include "lakesplice.promNumber" (mulf 2160 (subf 1.0 $objective)) }} and sum_over_time(lakesplice:table_late[30m]) > {{ include "lakesplice.promNumber" (mulf 180 (subf 1.0 $objective)) }})
        for: 2m
        labels: {severity: critical}
        annotations:
          summary: "The {{ "{{" }} $labels.view {{ "}}" }} view of {{ "{{" }} $labels.table {{ "}}" }} is late so often that its error budget of 30 days would be spent within five."
          section: "The error budget of a table is being used up"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#the-error-budget-of-a-table-is-being-used-up"
  - name: lakesplice-freshness-days
    interval: 5m
    rules:
      - alert: LakespliceFreshnessBudgetBurns
        expr: >-
          (sum_over_time(lakesplice:table_late[1d]) > {{ include "lakesplice.promNumber" (mulf 4320 (subf 1.0 $objective)) }} and sum_over_time(lakesplice:table_late[2h]) > {{ include "lakesplice.promNumber" (mulf 360 (subf 1.0 $objective)) }})
          or (sum_over_time(lakesplice:table_late[3d]) > {{ include "lakesplice.promNumber" (mulf 4320 (subf 1.0 $objective)) }} and sum_over_time(lakesplice:table_late[6h]) > {{ include "lakesplice.promNumber" (mulf 360 (subf 1.0 $objective)) }})
        for: 15m
        labels: {severity: warning}
        annotations:
          summary: "The {{ "{{" }} $labels.view {{ "}}" }} view of {{ "{{" }} $labels.table {{ "}}" }} is late more often than its error budget of 30 days allows."
          section: "The error budget of a table is being used up"
          runbook_url: "{{ $runbooks | toJson | trimAll "\"" }}#the-error-budget-of-a-table-is-being-used-up"
{{- end }}
