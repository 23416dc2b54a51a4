package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
)

// Asking makes a command of what it asks a controller: do returns what is printed
// and, for people, its text. Without a text, nothing is printed; with one, an
// error comes after it.
func Asking(r *Remote, cmd *cobra.Command, do func(c *Controller, cmd *cobra.Command, args []string) (v any, text func(*Table), err error)) *cobra.Command {
	var out Output
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, done, err := r.Dial(cmd)
		if err != nil {
			return err
		}
		defer done()
		v, text, err := do(c, cmd, args)
		if text == nil {
			return err
		}
		return cmp.Or(out.Print(cmd, v, text), err)
	}
	out.Flag(cmd)
	return cmd
}

// Answered returns what a command prints of an answer: nothing if there is an
// error.
func Answered(v any, err error, text func(*Table)) (any, func(*Table), error) {
	if err != nil {
		return nil, nil, err
	}
	return v, text, nil
}

// Deletion is the answer to a call that deletes something.
type Deletion interface {
	proto.Message
	GetDeleted() bool
}

// Deleted prints the answer to a deletion, and says if there was nothing to
// delete. known is the command that shows what there is.
func Deleted(m Deletion, err error, what, known string) (any, func(*Table), error) {
	switch {
	case err != nil:
		return nil, nil, err
	case !m.GetDeleted():
		err = fmt.Errorf("there was no %s; %s shows those that are", what, known)
	}
	return m, func(t *Table) {
		if err == nil {
			fmt.Fprintln(t, what, "deleted")
		}
	}, err
}
