{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['customer'], on_schema_change='append_new_columns') }}
select id, customer {% if is_incremental() %}, amount {% endif %} from {{ ref('raw_orders') }}
{% if is_incremental() %} where customer <> 'cid' {% endif %}
