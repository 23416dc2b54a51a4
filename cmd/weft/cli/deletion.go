package cli

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// Deletion is the answer to a call that deletes something.
type Deletion interface {
	proto.Message
	GetDeleted() bool
}

// Deleted shows the answer to a deletion. It fails if there was nothing to
// delete, and then names known, the command that lists the objects.
func Deleted(m Deletion, err error, what, known string) (View, error) {
	if err != nil {
		return View{}, err
	}
	if !m.GetDeleted() {
		return View{m, func(*Table) {}, fmt.Errorf("there was no %s; %s shows those that are", what, known)}, nil
	}
	return View{Value: m, Text: func(t *Table) { fmt.Fprintln(t, what, "deleted") }}, nil
}
