{{ config(materialized='incremental', incremental_strategy='merge', unique_key=['id'], merge_exclude_columns=['customer'], on_schema_change='sync_all_columns') }}
select id, customer, amount {% if is_incremental() %}, 'new' as extra {% endif %} from {{ ref('raw_orders') }}
