package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/lab/topology"
)

// ApplyOptions says how Apply changes a lab.
type ApplyOptions struct {
	// MadeFrom, if not empty, is the revision of the lab that the file was made from: a lab
	// that has another one is not touched.
	MadeFrom string
	// DryRun says to return what differs, and to touch nothing.
	DryRun bool
	// Progress, if not nil, receives what is done on each machine, from several goroutines.
	Progress func(machine, doing string)
}

// Apply makes a lab on several machines what a changed lab file says, and returns what differed.
// Nodes stay on their machines, and tunnels stay where their links do; a new node goes where few
// links are cut. On each machine only what differs is touched. What a machine lacks is said before any is touched. If
// Apply fails, another one completes it.
func Apply(ctx context.Context, name, file string, text []byte, opt ApplyOptions) (*topology.Difference, error) {
	if !opt.DryRun {
		lock, err := lock(name)
		if err != nil {
			return nil, err
		}
		defer lock.Close()
	}
	l, err := Open(name)
	if err != nil {
		return nil, err
	}
	if err := l.checkChange(opt.MadeFrom); err != nil {
		return nil, err
	}
	to, err := topology.ParseChanged(file, text, topology.Running{Topology: l.Topology})
	if err != nil {
		return nil, err
	}
	to.Name = l.Name
	if l.Given {
		to.Controllers = l.Topology.Controllers
	}
	from, err := l.now(ctx)
	if err != nil {
		return nil, err
	}
	if opt.Progress == nil {
		opt.Progress = func(string, string) {}
	}
	d := topology.Compare(from, to)
	if err := l.apply(ctx, from, to, text, opt); err != nil {
		return d, fmt.Errorf("apply %s to lab %s: %w", file, l.Name, err)
	}
	return d, nil
}

// checkChange says why the lab cannot be changed, or has been since a revision.
func (l *Lab) checkChange(madeFrom string) error {
	if !l.Ready {
		return fmt.Errorf("lab %s is half made: take it down with `weft lab down %s`, and bring it up again", l.Name, l.Name)
	}
	if is := l.Revision(); madeFrom != "" && madeFrom != is {
		return fmt.Errorf("lab %s has been changed meanwhile, such as on the command line: it has revision %s, and the file was made from %s; read it again, and change that", l.Name, is, madeFrom)
	}
	return nil
}

// CheckRevision is what Apply does about ApplyOptions.MadeFrom.
func (l *Lab) CheckRevision(madeFrom string) error { return l.checkChange(madeFrom) }

// Revision changes with every change of what the lab is made of.
func (l *Lab) Revision() string {
	if l.Changed.IsZero() {
		return l.Created.Format(time.RFC3339Nano)
	}
	return l.Changed.Format(time.RFC3339Nano)
}

// now is the topology of the lab with its links as they are; if an apply was not finished, that
// from before it.
func (l *Lab) now(ctx context.Context) (*topology.Topology, error) {
	if l.Was != nil {
		return l.Was, nil
	}
	links, err := l.Links(ctx)
	if err != nil {
		return nil, err
	}
	t := *l.Topology
	t.Hosts, t.Links = slices.Clone(t.Hosts), slices.Clone(t.Links)
	set := func(s *topology.Shape, is topology.Shape) {
		s.Rate, s.Delay, s.Jitter, s.Loss = is.Rate, is.Delay, is.Jitter, is.Loss
	}
	for i := range t.Hosts {
		set(&t.Hosts[i].Shape, links[i].Shape)
	}
	for i := range t.Links {
		set(&t.Links[i].Shape, links[len(t.Hosts)+i].Shape)
	}
	return &t, nil
}

// apply makes the lab what a topology says, or only finds out whether that is possible.
func (l *Lab) apply(ctx context.Context, from, to *topology.Topology, text []byte, opt ApplyOptions) error {
	is, parts, err := l.remap(to)
	if err != nil {
		return err
	}
	of := map[string]*topology.Topology{}
	for _, p := range parts {
		of[p.Machine] = p.Topology
	}
	err = l.each(func(_ int, k *Machine) error {
		if of[k.Name] == nil {
			return nil
		}
		opt.Progress(k.Name, "comparing its part")
		return l.change(ctx, k, of[k.Name], "--dry-run")
	})
	if err != nil || opt.DryRun {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	l.Topology, l.Mapping, l.File, l.Was, l.Changed = to, is, string(text), from, time.Now()
	if err := l.save(); err != nil {
		return err
	}
	err = l.each(func(_ int, k *Machine) error {
		if of[k.Name] == nil {
			opt.Progress(k.Name, "taking down its part")
			return l.takeDown(ctx, k)
		}
		opt.Progress(k.Name, "changing its part")
		return l.change(ctx, k, of[k.Name])
	})
	if err != nil {
		return fmt.Errorf("%w\nthe other machines have their parts; apply it again to complete it", err)
	}
	on := *l.Machines
	on.List = slices.DeleteFunc(slices.Clone(on.List), func(k Machine) bool { return of[k.Name] == nil })
	l.Machines, l.Was = &on, nil
	return l.save()
}

// remap places the nodes of a topology, those that are there where they are, and cuts it.
func (l *Lab) remap(to *topology.Topology) (*Mapping, []Part, error) {
	on := *l.Machines
	on.List = slices.Clone(on.List)
	byHand := map[string]bool{}
	for i := range on.List {
		k := &on.List[i]
		k.Nodes, k.line = nil, 0
		for _, p := range l.Mapping.Nodes {
			_, host := to.HostByName(p.Node)
			_, sw := to.SwitchByName(p.Node)
			if p.Machine == k.Name && (host || sw) {
				k.Nodes = append(k.Nodes, p.Node)
				byHand[p.Node] = p.ByHand
			}
		}
	}
	is, err := Map(to, &on)
	if err != nil {
		return nil, nil, err
	}
	for i, p := range is.Nodes {
		is.Nodes[i].ByHand = byHand[p.Node]
	}
	is.renumber(l.Mapping, to, used())
	parts, err := Parts(to, &on, is)
	return is, parts, err
}

// renumber gives each tunnel the network identifier that its link has in another mapping, and new ones
// others, none of which is in use.
func (m *Mapping) renumber(was *Mapping, to *topology.Topology, used map[uint32]bool) {
	kept := map[string]Tunnel{}
	for _, k := range was.Tunnels {
		kept[k.Link] = k
	}
	m.number(to.Name, used)
	for i := range m.Tunnels {
		k := &m.Tunnels[i]
		old, ok := kept[k.Link]
		if !ok && k.link >= 0 { // the file may have turned it round
			l := to.Links[k.link]
			l.A, l.B, l.APort, l.BPort = l.B, l.A, l.BPort, l.APort
			old, ok = kept[l.String()]
		}
		if ok {
			k.VNI = old.VNI
		}
	}
}

// change runs weft lab apply on a machine for its part.
func (l *Lab) change(ctx context.Context, k *Machine, part *topology.Topology, flags ...string) error {
	text, err := part.YAML()
	if err != nil {
		return err
	}
	ctx, cancel := unhurried(ctx)
	defer cancel()
	return l.ask(ctx, k, &topology.Difference{}, text, append([]string{"apply", "-", "--name", part.Name}, flags...)...)
}

// unhurried returns a context in which a machine may finish what it does, for a while after ctx ends.
func unhurried(ctx context.Context) (context.Context, context.CancelFunc) {
	up, cancel := context.WithTimeout(context.WithoutCancel(ctx), upTime)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(graceTime, cancel) })
	return up, func() { stop(); cancel() }
}

// lock takes the lock of a lab that is changed or taken down; closing it gives it back.
func lock(name string) (*os.File, error) {
	f, err := os.Open(dirOf(name))
	if err != nil {
		return nil, fmt.Errorf("lab %s: no such lab on several machines is up; see `weft lab list`", name)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lab %s is being changed or taken down by another command: wait until that is done", name)
		}
		return nil, fmt.Errorf("lock lab %s: %w", name, err)
	}
	return f, nil
}
