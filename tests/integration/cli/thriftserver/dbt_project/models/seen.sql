{{ config(materialized='view') }}
select customer, sum(amount) as total from {{ ref('replaced') }} group by customer
