package main

import "github.com/spf13/cobra"

func checkCommand() *cobra.Command { return &cobra.Command{Use: "check"} }
