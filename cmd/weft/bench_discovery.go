package main

import "github.com/spf13/cobra"

func benchDiscoveryCommand() *cobra.Command { return &cobra.Command{Use: "discovery"} }
