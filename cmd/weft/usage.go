package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// usageError is a command called wrongly.
type usageError struct {
	err     error
	command string
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%v\nsee %s --help", e.err, e.command)
}

func (e *usageError) Unwrap() error { return e.err }

// strict makes wrong flags and arguments of all commands usage errors.
func strict(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return &usageError{inWords(c, nil, err), c.CommandPath()} })
	if args := cmd.Args; args != nil {
		cmd.Args = func(c *cobra.Command, list []string) error {
			if err := args(c, list); err != nil {
				return &usageError{inWords(c, list, err), c.CommandPath()}
			}
			return nil
		}
	}
	if cmd.HasParent() && cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.RunE = func(c *cobra.Command, list []string) error {
			if len(list) == 0 {
				return c.Help()
			}
			var known []string
			for _, sub := range c.Commands() {
				if !sub.Hidden {
					known = append(known, sub.Name())
				}
			}
			return &usageError{fmt.Errorf("unknown command %q; allowed: %s", list[0], strings.Join(known, ", ")), c.CommandPath()}
		}
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}

// wrongly returns a usage error of a command.
func wrongly(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...), cmd.CommandPath()}
}
