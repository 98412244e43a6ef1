{{ config(materialized='table', partition_by=['customer']) }}
select id, customer, cast(amount as decimal(10,2)) as amount from {{ ref('raw_orders') }}
