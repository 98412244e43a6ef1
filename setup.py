"""Build entry point; every setting is in setup.cfg."""

from setuptools import setup

setup()
