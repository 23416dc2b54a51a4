package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/document"
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
	group := cmd.HasSubCommands() && !cmd.Runnable()
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if args := c.Flags().Args(); group && len(args) > 0 {
			return unknownCommand(c, args[0]) // its flags cannot be known either
		}
		return &UsageError{InWords(c, nil, err), c.CommandPath()}
	})
	if args := cmd.Args; args != nil {
		cmd.Args = func(c *cobra.Command, list []string) error {
			if err := args(c, list); err != nil {
				return &UsageError{InWords(c, list, err), c.CommandPath()}
			}
			return nil
		}
	}
	if group {
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(c *cobra.Command, list []string) error {
			if len(list) == 0 {
				return c.Help()
			}
			return unknownCommand(c, list[0])
		}
	}
	for _, sub := range cmd.Commands() {
		Strict(sub)
	}
}

// unknownCommand returns the error of a command that a group of commands does not have.
func unknownCommand(group *cobra.Command, name string) error {
	var known []string
	for _, sub := range group.Commands() {
		if !sub.Hidden {
			known = append(known, sub.Name())
		}
	}
	if meant := document.Meant(name, known); meant != "" {
		return Usagef(group, "unknown command %q%s", name, meant)
	}
	for _, sub := range group.Commands() {
		if i := slices.IndexFunc(sub.Commands(), func(c *cobra.Command) bool { return c.Name() == name && !c.Hidden }); i >= 0 && !sub.Hidden {
			return Usagef(group, "unknown command %q; did you mean %s %s?", name, sub.Name(), name)
		}
	}
	return Usagef(group, "unknown command %q; allowed: %s", name, strings.Join(known, ", "))
}

// AsUsage returns an error as a usage error if it says that an argument or a flag is wrong
// (InvalidArgument), whether the controller says so or the command. What is in a file is
// no part of the command line.
func AsUsage(cmd *cobra.Command, err error) error {
	remote, usage := (*RemoteError)(nil), (*UsageError)(nil)
	wrong := api.KindOf(err) == codes.InvalidArgument || errors.As(err, &remote) && remote.Kind == codes.InvalidArgument
	if !wrong || errors.As(err, &usage) || strings.Contains(cmd.Use, "FILE") || cmd.Flags().Changed("file") {
		return err
	}
	return &UsageError{err, cmd.CommandPath()}
}

// Usagef returns a usage error of a command.
func Usagef(cmd *cobra.Command, format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...), cmd.CommandPath()}
}
