package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/links"
	"github.com/weft-sdn/weft/lab/machine"
)

// Run is the life of a lab's keeper, the process that relays the switches'
// connections to their controllers, carries the frames of links with delay, and
// watches the programs of the hosts.
// It returns when ctx ends. Up starts it; nobody else does.
func Run(ctx context.Context, name string) error {
	report := os.NewFile(3, "report") // the pipe startKeeper waits on
	k, err := openKeeper(ctx, name)
	if err != nil {
		fmt.Fprintln(report, err)
		return err
	}
	defer k.close()
	fmt.Fprintln(report, keeperReady)
	report.Close()
	<-ctx.Done()
	return nil
}

// RunIfAsked turns this process into a lab's keeper, and never returns,
// if it was started as one; else it does nothing. It stands first in the main
// or TestMain of a program whose own path is Options.KeeperCommand.
func RunIfAsked() {
	dir := os.Getenv(machine.KeeperEnv)
	if dir == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := Run(ctx, filepath.Base(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

const keeperReady = "ready"

// Start starts a lab's keeper as a process of its own and returns once
// its sockets are listening and its cables laid.
func Start(ctx context.Context, s *layout.Lab, command []string) error {
	log, err := os.Create(filepath.Join(s.Dir(), "keeper.log"))
	if err != nil {
		return fmt.Errorf("start the keeper: %w", err)
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the keeper: %w", err)
	}
	defer r.Close()
	cmd := exec.Command(command[0], append(command[1:len(command):len(command)], s.Name)...)
	cmd.Dir = "/"
	cmd.Env = append(absolute(os.Environ()), machine.KeeperEnv+"="+s.Dir())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return fmt.Errorf("start the keeper: %w", err)
	}
	go cmd.Wait() // so that it leaves no zombie if it ends before this process
	stop := context.AfterFunc(ctx, func() { r.Close() })
	defer stop()
	said, err := bufio.NewReader(r).ReadString('\n')
	switch said = strings.TrimSpace(said); {
	case ctx.Err() != nil:
		return ctx.Err()
	case said == keeperReady:
		return nil
	case said == "":
		return fmt.Errorf("start the keeper with %q: it ended without a word (%v); see %s", cmd.Args, err, log.Name())
	}
	return fmt.Errorf("start the keeper: %s", said)
}

// keeper is the inside of the keeper process.
type keeper struct {
	lab      string
	relays   relays
	cables   *links.Cables
	programs programs
	orders   net.Listener
	nodes    nodeKeeping
	wg       sync.WaitGroup
}

func openKeeper(ctx context.Context, name string) (_ *keeper, err error) {
	s, err := layout.Load(name)
	if err != nil {
		return nil, err
	}
	k := &keeper{lab: name, relays: relays{}}
	defer func() {
		if err != nil {
			k.close()
		}
	}()
	if k.cables, err = links.NewCables(); err != nil {
		return nil, err
	}
	for i := range s.Wires {
		if w := &s.Wires[i]; w.Cable {
			if err := k.cables.Lay(w); err != nil {
				return nil, err
			}
		}
	}
	if err := k.relays.keep(ctx, s); err != nil {
		return nil, err
	}
	if k.orders, err = net.Listen("unix", Socket(name)); err != nil {
		return nil, fmt.Errorf("listen for orders: %w", err)
	}
	k.wg.Go(func() { k.serve(ctx) })
	return k, nil
}

func (k *keeper) close() {
	for _, r := range k.relays {
		r.close()
	}
	if k.orders != nil {
		k.orders.Close()
	}
	if k.cables != nil {
		k.cables.Close()
	}
	k.wg.Wait()
	k.nodes.close()
	k.programs.wg.Wait()
}

func (k *keeper) serve(ctx context.Context) {
	for {
		c, err := k.orders.Accept()
		if err != nil {
			return
		}
		var o Order
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		err = json.NewDecoder(c).Decode(&o)
		if err == nil {
			err = k.apply(ctx, o)
		}
		a := answer{}
		if o.Programs {
			a.Programs = k.programs.status()
		}
		if err != nil {
			a.Error = err.Error()
		}
		_ = json.NewEncoder(c).Encode(a)
		c.Close()
	}
}

// apply does what an order asks.
func (k *keeper) apply(ctx context.Context, o Order) error {
	if o.Programs && !o.Start && !o.End {
		return nil
	}
	if o.Remove {
		k.cables.Remove(o.Wire)
		return nil
	}
	if !o.Programs && !o.Lay && !o.Nodes && !o.Relays {
		return k.cables.Set(o.Wire, time.Duration(o.Delay), time.Duration(o.Jitter), !o.Down)
	}
	s, err := layout.Load(k.lab)
	if err != nil {
		return err
	}
	if o.End {
		k.programs.end(s)
		return nil
	}
	if o.Start {
		return k.programs.start(ctx, s)
	}
	if o.Relays {
		return k.relays.keep(ctx, s)
	}
	if o.Nodes {
		return k.nodes.keep(ctx, s)
	}
	i := slices.IndexFunc(s.Wires, func(w layout.Wire) bool { return w.ID == o.Wire })
	if i < 0 {
		return fmt.Errorf("there is no wire %d", o.Wire)
	}
	return k.cables.Lay(&s.Wires[i])
}

// absolute returns an environment in which the files that `weft node run` reads, which
// runs elsewhere, have whole paths.
func absolute(env []string) []string {
	list := slices.Clone(env)
	for i, e := range list {
		name, path, _ := strings.Cut(e, "=")
		if slices.Contains([]string{"WEFT_CA", "WEFT_CLIENT_CERT", "WEFT_TOKEN_FILE"}, name) && path != "" {
			if whole, err := filepath.Abs(path); err == nil {
				list[i] = name + "=" + whole
			}
		}
	}
	return list
}
