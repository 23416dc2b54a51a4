package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// view is an answer: the value for programs, and how to write it for people.
type view struct {
	value  any
	text   func(*table)
	failed error // what is missing in it, and why
}

// getter makes a command that asks a controller and prints the answer.
func getter(r *remote, cmd *cobra.Command, ask func(c *controller, args []string) (view, error)) *cobra.Command {
	var out output
	if cmd.Args == nil {
		cmd.Args = cobra.NoArgs
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, done, err := r.dial(cmd)
		if err != nil {
			return err
		}
		defer done()
		v, err := ask(c, args)
		if err != nil {
			return err
		}
		return errors.Join(out.print(cmd, v.value, v.text), v.failed)
	}
	out.flag(cmd)
	return cmd
}
