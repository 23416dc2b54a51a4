package main

import "github.com/spf13/cobra"

func flowCommand() *cobra.Command { return &cobra.Command{Use: "flow"} }
