package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// UsageError is a command called wrongly.
type UsageError struct {
	Err     error
	Command string
}

func (e *UsageError) Error() string {
	return fmt.Sprintf("%v\nsee %s --help", e.Err, e.Command)
}

func (e *UsageError) Unwrap() error { return e.Err }

// Strict makes wrong flags and arguments of all commands usage errors.
func Strict(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return &UsageError{InWords(c, nil, err), c.CommandPath()} })
	if args := cmd.Args; args != nil {
		cmd.Args = func(c *cobra.Command, list []string) error {
			if err := args(c, list); err != nil {
				return &UsageError{InWords(c, list, err), c.CommandPath()}
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
			return &UsageError{fmt.Errorf("unknown command %q; allowed: %s", list[0], strings.Join(known, ", ")), c.CommandPath()}
		}
	}
	for _, sub := range cmd.Commands() {
		Strict(sub)
	}
}

// Usagef returns a usage error of a command.
func Usagef(cmd *cobra.Command, format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...), cmd.CommandPath()}
}
