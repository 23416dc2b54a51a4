package serve

import (
	"context"
	"os/exec"

	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/testbed"
	"github.com/weft-sdn/weft/lab/traffic"
)

// running is a lab that is up, wherever its nodes are: *lab.Lab is one on this machine,
// *testbed.Lab one on several.
type running interface {
	// CheckNode returns an error unless the lab has a node.
	CheckNode(node string) error
	// CheckRevision returns an error if the lab has another revision, which is not empty.
	CheckRevision(madeFrom string) error
	// NodeNames returns the names of the nodes, in the order of the lab's graph.
	NodeNames() []string
	// Samples returns what the nodes use of each machine.
	Samples(ctx context.Context) ([]lab.Sample, error)
	TrafficAll(ctx context.Context, flows []traffic.Flow) []traffic.FlowResult
	Iperf(ctx context.Context, from, to string, opt traffic.IperfOptions) (traffic.IperfResult, error)
	// Where says on which machine a node is; empty: this one.
	Where(node string) string
	// Text is the text of the lab's file.
	Text() ([]byte, error)
	// StartAt starts a prepared command in a node.
	StartAt(node string, cmd *exec.Cmd) error
	// Exec runs a command in a node and returns what it wrote.
	Exec(ctx context.Context, node string, argv ...string) (string, error)
	// StartCapture starts a command that is prepared for lab.CaptureProgram.
	StartCapture(cmd *exec.Cmd, c lab.Capture) error
}

var _, _ running = (*lab.Lab)(nil), (*testbed.Lab)(nil)

// running returns the lab of a name.
func (s *server) running(name string) (running, error) {
	if far := s.far(name); far != nil {
		return far, nil
	}
	return open(name)
}

// at names a node, with the machine that it is on.
func at(l running, node string) string {
	if k := l.Where(node); k != "" {
		return node + " (" + k + ")"
	}
	return node
}
