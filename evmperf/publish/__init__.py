"""What is made of runs: report, site, guide, dashboards, and what goes into databases and stores."""
