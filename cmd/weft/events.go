package main

import "github.com/spf13/cobra"

func eventsCommand() *cobra.Command { return &cobra.Command{Use: "events"} }
