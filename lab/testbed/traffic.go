package testbed

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/weft-sdn/weft/lab/traffic"
)

// TrafficAll sends packets of several flows at once and measures how long each took, by the clocks
// of the machines, which are compared over ssh.
func (l *Lab) TrafficAll(ctx context.Context, flows []traffic.Flow) []traffic.FlowResult {
	var longest time.Duration
	for _, f := range flows {
		longest = max(longest, f.Options.Duration)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*longest+time.Minute)
	defer cancel()
	ends := map[string]*trafficEnds{}
	var failed error
	results := traffic.Between(ctx, flows, l.Host, func(host string) *traffic.Machine {
		name := l.Mapping.MachineOf(host)
		if ends[name] == nil {
			e, err := l.startTrafficEnds(ctx, host)
			if err != nil && failed == nil {
				failed = err
			}
			e.Name = "machine " + name
			ends[name] = e
		}
		return &ends[name].Machine
	})
	cancel()
	for _, e := range ends {
		if e.cmd != nil {
			_ = e.cmd.Wait() // it is killed
		}
	}
	for i := range results {
		r := &results[i]
		if r.Err == nil {
			continue
		}
		if failed != nil {
			r.Err = failed
		}
		for _, e := range ends {
			if said := strings.TrimSpace(e.said.text.String()); said != "" {
				r.Err = fmt.Errorf("%w: %s: %s", r.Err, e.Name, said)
			}
		}
	}
	return results
}

// trafficEnds is weft lab traffic-ends on a machine.
type trafficEnds struct {
	traffic.Machine
	cmd  *exec.Cmd // nil if it does not run
	said bounded
}

// startTrafficEnds starts it on the machine of a node. What it returns can be read and written also
// if it fails.
func (l *Lab) startTrafficEnds(ctx context.Context, node string) (*trafficEnds, error) {
	e := &trafficEnds{said: bounded{most: maxWords}}
	e.Reader, e.Writer = strings.NewReader(""), &bounded{most: maxOutput}
	cmd := exec.CommandContext(ctx, "ssh")
	cmd.WaitDelay = 5 * time.Second
	cmd.Stderr = &e.said
	in, err := cmd.StdinPipe()
	if err != nil {
		return e, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return e, err
	}
	if err := l.start(node, cmd, false, []string{"traffic-ends"}); err != nil {
		return e, err
	}
	e.cmd, e.Reader, e.Writer = cmd, out, in
	return e, nil
}
