package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// View is an answer: the value for programs, and how to write it for people.
type View struct {
	Value  any
	Text   func(*Table)
	Failed error // what is missing in it, and why
}

// Query makes a command that asks a controller and prints the answer.
func Query(r *Remote, cmd *cobra.Command, ask func(c *Controller, args []string) (View, error)) *cobra.Command {
	var out Output
	if cmd.Args == nil {
		cmd.Args = cobra.NoArgs
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, done, err := r.Dial(cmd)
		if err != nil {
			return err
		}
		defer done()
		v, err := ask(c, args)
		if err != nil {
			return AsUsage(cmd, err)
		}
		return errors.Join(out.Print(cmd, v.Value, v.Text), v.Failed)
	}
	out.Flag(cmd)
	return cmd
}
