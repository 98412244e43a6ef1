{{ config(materialized='incremental', incremental_strategy='append', on_schema_change='append_new_columns') }}
select id, customer {% if is_incremental() %}, cast(amount as string) as extra {% endif %} from {{ ref('raw_orders') }}
