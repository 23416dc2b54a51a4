package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"
)

const (
	// maxAtOnce bounds the machines that are worked on at a time.
	maxAtOnce = 16

	upTime    = 10 * time.Minute // for a machine to bring its part up
	downTime  = 2 * time.Minute  // to take it down
	graceTime = 30 * time.Second // to finish after an interrupt
)

// Options says how Up brings a lab up.
type Options struct {
	// Controllers replaces those of the lab file and of the resource file, if not empty.
	Controllers []string
	// Program is the path of weft here, which is copied to machines.
	Program string
	// Progress, if not nil, receives what is done on each machine, from several goroutines.
	Progress func(machine, doing string)
}

// DoneUp is what Progress receives when a machine's part is up.
const DoneUp = "up"

// Up brings a completed topology up on several machines, all at a time. If it fails on
// one, or ctx ends, it takes down what it made on all of them. The error says for each machine that
// failed why.
func Up(ctx context.Context, t *topology.Topology, m *Machines, opt Options) (*Lab, error) {
	t, on, is, parts, err := prepare(t, m, opt.Controllers)
	if err != nil {
		return nil, err
	}
	of := map[string]*topology.Topology{}
	for _, p := range parts {
		of[p.Machine] = p.Topology
	}
	on.List = slices.DeleteFunc(slices.Clone(m.List), func(k Machine) bool { return of[k.Name] == nil })
	if opt.Progress == nil {
		opt.Progress = func(string, string) {}
	}
	l := &Lab{Name: t.Name, Created: time.Now(), Topology: t, Mapping: is, Machines: on, Programs: map[string]string{}, File: string(t.Text()), Given: len(opt.Controllers) > 0}
	p, err := readProgram(opt.Program)
	if err != nil {
		return nil, err
	}
	if err := l.claim(); err != nil {
		return nil, err
	}
	if err := l.make(ctx, p, of, opt.Progress); err != nil {
		return nil, fmt.Errorf("bring lab %s up: %w", l.Name, err)
	}
	return l, nil
}

// Check returns where the nodes would be, or why Up would refuse the lab without asking any
// machine.
func Check(t *topology.Topology, m *Machines, controllers []string) (*Mapping, error) {
	_, _, is, _, err := prepare(t, m, controllers)
	return is, err
}

func prepare(t *topology.Topology, m *Machines, controllers []string) (*topology.Topology, *Machines, *Mapping, []Part, error) {
	on := *m
	if len(controllers) > 0 {
		copied := *t
		copied.Controllers, on.Controller = controllers, ""
		t = &copied
	}
	if err := topology.Check(t); err != nil {
		return nil, nil, nil, nil, err
	}
	is, err := Map(t, &on)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	is.number(t.Name, used())
	parts, err := Parts(t, &on, is)
	return t, &on, is, parts, err
}

func (l *Lab) make(ctx context.Context, p *program, parts map[string]*topology.Topology, progress func(machine, doing string)) error {
	var mu sync.Mutex // guards l.Programs and the following
	var made []string
	err := l.each(func(_ int, k *Machine) error {
		doing := func(what string) { progress(k.Name, what) }
		path, err := l.Machines.prepare(ctx, k, p, doing)
		if err != nil {
			return err
		}
		mu.Lock()
		l.Programs[k.Name] = path
		mu.Unlock()
		return l.vacant(ctx, k)
	})
	if err == nil {
		err = l.save()
	}
	if err != nil {
		return errors.Join(err, l.forget())
	}
	err = l.each(func(_ int, k *Machine) error {
		progress(k.Name, "bringing up its part")
		died, err := l.bringUp(ctx, k, parts[k.Name])
		mu.Lock()
		defer mu.Unlock()
		if no := (*failedThere)(nil); !errors.As(err, &no) { // or it is not known
			made = append(made, k.Name)
		}
		if died != nil {
			l.Died = append(l.Died, died)
		}
		if err == nil {
			progress(k.Name, DoneUp)
		}
		return err
	})
	if err == nil && ctx.Err() == nil {
		l.Ready = true
		err = l.save()
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err == nil {
		return nil
	}
	clean := context.WithoutCancel(ctx)
	left := l.each(func(_ int, k *Machine) error {
		if !slices.Contains(made, k.Name) {
			return nil
		}
		progress(k.Name, "taking down its part")
		return l.takeDown(clean, k)
	})
	if left != nil {
		return fmt.Errorf("%w\nwhat was made is not all taken down; do so by `weft lab down %s`: %w", err, l.Name, left)
	}
	return errors.Join(err, l.forget())
}

// each runs fn for the machines of the lab, several at a time, and returns all errors
// in the order of the machines.
func (l *Lab) each(fn func(at int, k *Machine) error) error {
	errs := make([]error, len(l.Machines.List))
	places := make(chan struct{}, maxAtOnce)
	var wg sync.WaitGroup
	for i := range l.Machines.List {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			errs[i] = fn(i, &l.Machines.List[i])
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// weft runs the program on a machine.
func (l *Lab) weft(ctx context.Context, k *Machine, input []byte, args ...string) ([]byte, error) {
	path := l.Programs[k.Name]
	if path == "" {
		return nil, k.failed(errNothing)
	}
	return l.Machines.run(ctx, k, bytes.NewReader(input), append([]string{path, "lab"}, args...)...)
}

// ask is weft for a command that answers with JSON, which it puts in to; it may have
// failed all the same.
func (l *Lab) ask(ctx context.Context, k *Machine, to any, input []byte, args ...string) error {
	out, err := l.weft(ctx, k, input, append(args, "-o", "json")...)
	if len(out) == 0 && err != nil {
		return err
	}
	if wrong := json.Unmarshal(out, to); wrong != nil {
		if err == nil {
			err = k.failed(fmt.Errorf("it answered %.60q: is weft there as new as here?", out))
		}
		return err
	}
	return err
}

// vacant reports whether a machine has no lab of the part's name.
func (l *Lab) vacant(ctx context.Context, k *Machine) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var labs []lab.Status
	if err := l.ask(ctx, k, &labs, nil, "list"); err != nil {
		return err
	}
	name := PartName(l.Name, k.Name)
	if slices.ContainsFunc(labs, func(s lab.Status) bool { return s.Name == name }) {
		return k.failed(fmt.Errorf("lab %s is up there already: take it down there with `weft lab down %s`, or give this lab another name", name, name))
	}
	return nil
}

// bringUp brings a part up; died says what programs have, while the part is up. If ctx ends
// it waits a while for the machine to be done, so that there is something to take down.
func (l *Lab) bringUp(ctx context.Context, k *Machine, part *topology.Topology) (died, err error) {
	text, err := part.YAML()
	if err != nil {
		return nil, err
	}
	up, cancel := unhurried(ctx)
	defer cancel()
	var is struct {
		Name string `json:"name"`
	}
	err = l.ask(up, k, &is, text, "up", "-", "--name", part.Name)
	if err != nil && is.Name == part.Name {
		return err, nil
	}
	return nil, err
}

func (l *Lab) takeDown(ctx context.Context, k *Machine) error {
	if l.Programs[k.Name] == "" { // not even the program
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, downTime)
	defer cancel()
	var is struct {
		Down []string `json:"down"`
	}
	return l.ask(ctx, k, &is, nil, "down", PartName(l.Name, k.Name), "--ignore-not-found") // its part may not have come up
}

// Down takes the lab down on all machines. Where that fails it stays known, for another
// try, unless forget says that this machine is to know it no more.
func (l *Lab) Down(ctx context.Context, forget bool) error {
	lock, err := lock(l.Name)
	if err != nil && !forget {
		return err
	}
	defer lock.Close() // of nil, too
	var mu sync.Mutex  // guards left
	var left []Machine
	err = l.each(func(_ int, k *Machine) error {
		err := l.takeDown(ctx, k)
		if err != nil {
			mu.Lock()
			left = append(left, *k)
			mu.Unlock()
		}
		return err
	})
	if err == nil || forget {
		return l.forget()
	}
	var names []string
	for _, k := range left {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	return fmt.Errorf("take lab %s down: %w\nit may be up still on %s: try again, or, if that machine is gone for good, `weft lab down %s --forget`", l.Name, err, strings.Join(names, ", "), l.Name)
}
