package lab

import (
	"context"
	"os/exec"

	"github.com/weft-sdn/weft/lab/machine"
)

// AttendAt runs a command in a node as Attend does.
func (l *Lab) AttendAt(ctx context.Context, node string, cmd *exec.Cmd, a machine.Attended) error {
	return machine.Attend(ctx, cmd, a, func() error { return l.StartAt(node, cmd) })
}
