package main

import "github.com/spf13/cobra"

func traceCommand() *cobra.Command { return &cobra.Command{Use: "trace"} }
