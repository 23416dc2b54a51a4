package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/nodes"
	"github.com/weft-sdn/weft/lab/topology"
)

// StartPrograms starts the lab's programs, and returns once each has run for a
// while or has ended.
func StartPrograms(ctx context.Context, s *layout.Lab) error {
	if s.Weft != "" {
		if err := os.MkdirAll(nodes.HostsOf(s).ProgramsDir(), 0o755); err != nil {
			return fmt.Errorf("start programs: %w", err)
		}
		if err := os.Symlink(s.Weft, filepath.Join(nodes.HostsOf(s).ProgramsDir(), "weft")); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("start programs: %w", err)
		}
	}
	a, err := Ask(ctx, s.Name, Order{Programs: true, Start: true})
	for err == nil && slices.ContainsFunc(a.Programs, func(p ProgramStatus) bool {
		return p.State == ProgramStarting || p.State == ProgramRunning && p.Starts == 1 && time.Since(p.Since) < settling
	}) {
		if err := backoff.Sleep(ctx, settling/20); err != nil {
			return err
		}
		a, err = Ask(ctx, s.Name, Order{Programs: true})
	}
	return err
}

// Programs returns what became of the programs of a lab; Unknown is their state if its
// keeper does not answer.
func Programs(ctx context.Context, s *layout.Lab) []ProgramStatus {
	if !s.Topology.HasPrograms() {
		return nil
	}
	if a, err := Ask(ctx, s.Name, Order{Programs: true}); err == nil && len(a.Programs) > 0 {
		return a.Programs
	}
	var all []ProgramStatus
	for _, h := range s.Topology.Hosts {
		for j := range h.Run {
			all = append(all, newStatus(s, h.Name, &h.Run[j], ProgramUnknown))
		}
	}
	return all
}

// Order is what another process asks of the keeper, about the programs or about
// one wire.
type Order struct {
	Programs bool           `json:"programs,omitempty"` // what became of them
	Start    bool           `json:"start,omitempty"`    // having started those that the state names, and ended others
	End      bool           `json:"end,omitempty"`      // having ended those that the state does not name
	Nodes    bool           `json:"nodes,omitempty"`    // keep the daemons of those nodes that the state names
	Relays   bool           `json:"relays,omitempty"`   // to the controllers that the state names
	Wire     int            `json:"wire"`
	Lay      bool           `json:"lay,omitempty"`    // make the cable the state describes
	Remove   bool           `json:"remove,omitempty"` // the cable, if there is one
	Delay    topology.Delay `json:"delay,omitempty"`  // else set its delay, jitter and carrier
	Jitter   topology.Delay `json:"jitter,omitempty"`
	Down     bool           `json:"down,omitempty"`
}

type answer struct {
	Error    string          `json:"error,omitempty"`
	Programs []ProgramStatus `json:"programs,omitempty"`
}

// Ask sends an order to a lab's keeper.
func Ask(ctx context.Context, lab string, o Order) (a answer, err error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", Socket(lab))
	if err != nil {
		return a, fmt.Errorf("the keeper of lab %s does not answer: take the lab down and up again: %w", lab, err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if err := json.NewEncoder(c).Encode(o); err != nil {
		return a, fmt.Errorf("ask the keeper of lab %s: %w", lab, err)
	}
	if err := json.NewDecoder(c).Decode(&a); err != nil {
		return a, fmt.Errorf("ask the keeper of lab %s: %w", lab, err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

func Socket(lab string) string { return filepath.Join(machine.Dir(lab), "keeper.sock") }

// settling is how long a program must run before it counts as started.
const settling = time.Second
