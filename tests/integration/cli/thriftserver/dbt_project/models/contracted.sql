{{ config(materialized='table') }}
select cast(id as bigint) as id, customer, named_struct('cents', cast(amount * 100 as int)) as price from {{ ref('raw_orders') }}
