package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/supervisor"
	"github.com/weft-sdn/weft/internal/netspace"
	"github.com/weft-sdn/weft/internal/rootpart"
	"github.com/weft-sdn/weft/internal/shares"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/services/qos"
	"github.com/weft-sdn/weft/services/scp"
)

// partDirectory is where the sockets of parts that stay root are.
const partDirectory = "/run/weft/root"

// aliveVariable names the descriptor whose closing ends the part that stays root.
const aliveVariable = "WEFT_ROOT_PART_ALIVE"

// partConfig is what the part that stays root knows; nobody tells it more.
type partConfig struct {
	UID        int         `json:"uid"`        // whose processes it answers
	Workers    string      `json:"workers"`    // directory of their supervisor
	QoS        *qos.Config `json:"qos"`        // nil: it brings no queues
	Why        string      `json:"why"`        // it brings none
	Namespaces []string    `json:"namespaces"` // in which it opens sockets

	Made madeDirectories `json:"made"` // for this controller; it removes those that are empty at its end
}

// rootPart is a part that runs.
type rootPart struct {
	path  string
	alive *os.File // it ends when this is closed
}

// startPart starts the part that stays root, for the controller in a data
// directory: one for each key.
func startPart(c partConfig, dir, key string) (*rootPart, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(partDirectory, 0o755); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(dir + "\x00" + key))
	path := filepath.Join(partDirectory, hex.EncodeToString(sum[:8]))
	lock, err := lockPart(path+".lock", dir)
	if err != nil {
		return nil, err
	}
	defer lock.Close() // the part keeps it
	if err := os.Remove(path + ".sock"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err // of a controller that was killed
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path + ".sock", Net: "unix"})
	if err == nil {
		defer l.Close()
		l.SetUnlinkOnClose(false)
		err = errors.Join(os.Chmod(path+".sock", 0o600), os.Chown(path+".sock", c.UID, -1))
	}
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	socket, err := l.File()
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := exec.Command("/proc/self/exe", "root-part")
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stderr, cmd.Dir = r, os.Stderr, "/"
	cmd.ExtraFiles = []*os.File{socket, lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := w.Write(append(text, '\n')); err != nil {
		return nil, err
	}
	return &rootPart{path + ".sock", w}, nil
}

// read sets what the part does for the services of a plan. Where the settings have
// mistakes, the controller says so itself.
func (c *partConfig) read(p *plan.Plan, set []string) {
	var err error
	if c.QoS, err = queuesOf(p, set); err != nil {
		c.Why = "the part of the controller that is root brings no queues: " + err.Error()
	}
	spec := scp.Spec()
	for _, w := range workersOf(p, spec.Name) {
		if cfg, err := config.Effective(p, w, &spec, overrides(set)...); err == nil {
			c.Namespaces = append(c.Namespaces, cfg.(*scp.Config).Namespace)
		}
	}
}

// workersOf returns the workers of a plan with a service; without any, the empty
// one, whose settings would count if it ran.
func workersOf(p *plan.Plan, service string) (names []string) {
	for _, w := range p.Workers {
		if slices.Contains(w.Services, service) {
			names = append(names, w.Name)
		}
	}
	if len(names) == 0 {
		names = []string{""}
	}
	return names
}

// queuesOf returns the configuration by which the part brings queues: that of qos
// in the plan, wherever it runs.
func queuesOf(p *plan.Plan, set []string) (*qos.Config, error) {
	spec := qos.Spec()
	var found *qos.Config
	for _, w := range workersOf(p, spec.Name) {
		c, err := config.Effective(p, w, &spec, overrides(set)...)
		if err != nil {
			return nil, err
		}
		cfg, ok := c.(*qos.Config)
		if !ok {
			return nil, fmt.Errorf("the configuration of qos is a %T", c)
		}
		if found != nil && (found.VSCtl != cfg.VSCtl || !slices.Equal(found.VSCtlOptions, cfg.VSCtlOptions) || found.OVSDB != cfg.OVSDB || !maps.Equal(found.OVSDBSwitches, cfg.OVSDBSwitches)) {
			return nil, errors.New("the plan has several settings of qos.vsctl, qos.ovsdb and their kin, and the part of the controller that is root takes one; give all workers the same, or start with --user root")
		}
		found = cfg
	}
	return found, nil
}

// lockPart makes a file and locks it; a part whose controller has just ended lets
// go of it, and removes it.
func lockPart(path, dir string) (*os.File, error) {
	for end := time.Now().Add(3 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			ours, err1 := f.Stat()
			there, err2 := os.Stat(path)
			if err1 == nil && err2 == nil && os.SameFile(ours, there) {
				err = f.Truncate(0)
				if err == nil {
					_, err = fmt.Fprintln(f, os.Getpid())
				}
				return f, err
			}
		}
		by, _ := io.ReadAll(f)
		f.Close()
		switch {
		case err != nil && !errors.Is(err, unix.EWOULDBLOCK):
			return nil, fmt.Errorf("lock %s: %w", path, err)
		case time.Now().After(end):
			return nil, inUse{dir, strings.TrimSpace(string(by))}
		}
	}
}

// inUse is the error of a data directory whose part that stays root runs.
type inUse struct{ dir, process string }

func (e inUse) Error() string {
	return fmt.Sprintf("data directory %s is in use by process %s; stop that process, or give this one a directory of its own", e.dir, e.process)
}

// inheritPart has the processes that this one starts not hold the part that stays
// root alive.
func inheritPart() {
	var fd int
	if _, err := fmt.Sscan(os.Getenv(aliveVariable), &fd); err == nil && fd > 2 {
		unix.CloseOnExec(fd)
	}
	_ = os.Unsetenv(aliveVariable)
}

func RootPartCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "root-part",
		Hidden: true,
		Short:  "Do for a controller what only root may, until its end",
		Args:   cobra.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return runPart(os.Stdin, os.NewFile(3, "socket")) },
	}
}

// runPart answers the controller until that closes its end of the pipe. Signals
// are for the controller.
func runPart(controller io.Reader, socket *os.File) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	d := json.NewDecoder(controller)
	var c partConfig
	if err := d.Decode(&c); err != nil {
		return fmt.Errorf("this is for weft up: %w", err)
	}
	l, err := net.FileListener(socket)
	if err != nil {
		return err
	}
	verbs, err := supervisor.Rights(c.Workers, c.UID)
	if err != nil {
		return err
	}
	maps.Copy(verbs, qos.Rights(c.QoS, c.Why))
	maps.Copy(verbs, netspace.Rights(c.Namespaces))
	go func() {
		_, _ = io.Copy(io.Discard, io.MultiReader(d.Buffered(), controller))
		c.Made.removeEmpty()
		if path := l.Addr().String(); strings.HasPrefix(path, partDirectory+"/") { // nobody else's, as long as the lock is ours
			_ = os.Remove(path)
			_ = os.Remove(strings.TrimSuffix(path, ".sock") + ".lock")
		}
		os.Exit(0)
	}()
	evicted := shares.Sparsely(func(n uint64) {
		fmt.Fprintf(os.Stderr, "the part of the controller that is root has closed %d connections that asked nothing, to make room for others\n", n)
	})
	return rootpart.Server{UID: c.UID, Verbs: verbs, Evicted: evicted}.Serve(l)
}
