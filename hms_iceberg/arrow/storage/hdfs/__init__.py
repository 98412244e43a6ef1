"""HDFS without a Hadoop installation, by hdfs-native; or with one, by libhdfs."""
