package nodes

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/node"
)

// routeNode has a node's daemons run with their configuration, and no others. What
// has changed is said to one that runs; where that does not do, it alone is
// started again.
func (s Routing) routeNode(ctx context.Context, n *layout.Node) error {
	frr, err := user.Lookup("frr")
	if err != nil {
		return fmt.Errorf("find the user that FRR runs as: %w", err)
	}
	uid, _ := strconv.Atoi(frr.Uid)
	gid, _ := strconv.Atoi(frr.Gid)
	dir := s.RoutingDir(n)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		return err
	}
	wanted := s.FRRDaemons()
	for _, d := range wanted {
		if err := s.routeBy(ctx, n, d); err != nil {
			return err
		}
	}
	for _, d := range []string{"ospf6d", "ospfd", "bfdd"} {
		if !slices.Contains(wanted, d) {
			s.stopFRR(n, d)
			os.Remove(filepath.Join(dir, d+".conf"))
		}
	}
	return nil
}

// routeBy has one daemon of a node run with its configuration.
func (s Routing) routeBy(ctx context.Context, n *layout.Node, name string) error {
	path := filepath.Join(s.RoutingDir(n), name+".conf")
	text := s.FRRConfig(n, name)
	was, _ := asowner.ReadFile(path)
	d := Daemon{pidfile: filepath.Join(s.RoutingDir(n), name+".pid")}
	runs := d.Open()
	d.Close()
	if runs && string(was) == text {
		return nil
	}
	told := false
	if runs {
		commands, ok := FRRChange(name, string(was), text)
		told = ok && node.Configure(ctx, filepath.Join(s.RoutingDir(n), name+".vty"), commands...) == nil
		if !told {
			s.stopFRR(n, name)
		}
	}
	if err := asowner.Do(path, func() error { return machine.ReplaceFile(path, []byte(text), 0o640) }); err != nil || told {
		return err
	}
	return s.startFRR(ctx, n, name)
}

// stopFRR ends a daemon of a node's routing.
func (s Routing) stopFRR(n *layout.Node, name string) {
	d := Daemon{pidfile: filepath.Join(s.RoutingDir(n), name+".pid")}
	if !d.Open() {
		return
	}
	defer d.Close()
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		_ = unix.PidfdSendSignal(d.Pidfd, sig, nil, 0)
		if machine.PollUntil(int32(d.Pidfd), time.Now().Add(KillAfter)) {
			return
		}
	}
}

// frrPart is a line of a configuration with those that belong to it.
type frrPart struct {
	head string
	sub  []string
}

func frrParts(text string) (all []frrPart) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if sub, ok := strings.CutPrefix(line, " "); ok && len(all) > 0 {
			all[len(all)-1].sub = append(all[len(all)-1].sub, sub)
		} else {
			all = append(all, frrPart{head: line})
		}
	}
	return all
}

// FRRChange returns the commands that lead a daemon from one configuration to
// another; false if it has to be started again.
func FRRChange(daemon, from, to string) (commands []string, ok bool) {
	if daemon == "bfdd" { // a profile, whose values are set anew
		for line := range strings.Lines(to) {
			commands = append(commands, strings.TrimSpace(line))
		}
		return commands, true
	}
	was, is := frrParts(from), frrParts(to)
	find := func(all []frrPart, head string) *frrPart {
		if i := slices.IndexFunc(all, func(p frrPart) bool { return p.head == head }); i >= 0 {
			return &all[i]
		}
		return nil
	}
	for _, old := range slices.Backward(was) {
		now := find(is, old.head)
		switch {
		case strings.HasPrefix(old.head, "interface "):
			if now == nil {
				now = &frrPart{}
			}
			begun := false
			for _, line := range slices.Backward(old.sub) {
				if slices.ContainsFunc(now.sub, func(l string) bool { return l == line || setting(l) == setting(line) }) {
					continue
				}
				if !begun {
					commands, begun = append(commands, old.head), true
				}
				commands = append(commands, "no "+line)
			}
			if begun {
				commands = append(commands, "exit")
			}
		case strings.HasPrefix(old.head, "router "):
			if now == nil || !slices.Equal(now.sub, old.sub) {
				return nil, false
			}
		case now == nil:
			commands = append(commands, "no "+old.head)
		}
	}
	for _, now := range is {
		old := find(was, now.head)
		if old != nil && slices.Equal(old.sub, now.sub) {
			continue
		}
		if old != nil {
			now.sub = slices.DeleteFunc(now.sub, func(l string) bool { return slices.Contains(old.sub, l) })
		}
		commands = append(commands, now.head)
		if len(now.sub) > 0 || strings.HasPrefix(now.head, "interface ") {
			commands = append(append(commands, now.sub...), "exit")
		}
	}
	return commands, true
}

// setting is what a line sets, without the number.
func setting(line string) string {
	if i := strings.LastIndexByte(line, ' '); i >= 0 && line[i+1] >= '0' && line[i+1] <= '9' {
		return line[:i]
	}
	return line
}

// StartRouting writes the configuration of every node's routing, and starts it.
func (s Routing) StartRouting(ctx context.Context) error {
	if len(s.Nodes) == 0 {
		return nil
	}
	list := make([]*layout.Node, len(s.Nodes))
	for i := range s.Nodes {
		list[i] = &s.Nodes[i]
	}
	return machine.ForEach(ctx, list, func(n *layout.Node, ctx context.Context) error {
		if err := s.routeNode(ctx, n); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
		return nil
	})
}
