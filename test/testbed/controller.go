package testbed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/internal/cputime"
	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/test/measure"
)

// Config says how to start a controller.
type Config struct {
	// Program is the weft binary; empty is the one beside this program, or on PATH.
	Program string
	// Plan is what runs where; nil is one process as `weft up` starts it.
	Plan *Plan
	// CPU is the processor that all of it runs on; negative is any.
	CPU int
	// Environment is variables, NAME=VALUE, that it has besides this process's.
	Environment []string
}

// Controller is a controller of Weft's that was started here, with its state in
// a directory of its own.
type Controller struct {
	Name     string
	OpenFlow []string // HOST:PORT where switches connect, of each partition
	North    []string // HOST:PORT of the northbound, likewise
	config   Config
	program  string
	dir      string
	process  *Process
	conns    []*grpc.ClientConn // to the northbounds
}

// New prepares a controller: it has its addresses, and starts with Run.
func New(cfg Config) (c *Controller, err error) {
	c = &Controller{Name: "weft", config: cfg, program: cfg.Program}
	if cfg.Plan != nil {
		c.Name = cfg.Plan.Name
	}
	if c.program == "" {
		if c.program, err = companion.Find("weft"); err != nil {
			return nil, err
		}
	}
	parts := 1
	if cfg.Plan != nil {
		parts = max(parts, len(cfg.Plan.Partitions))
	}
	for range parts {
		for _, list := range []*[]string{&c.OpenFlow, &c.North} {
			port, err := freeport.Port()
			if err != nil {
				return nil, err
			}
			*list = append(*list, fmt.Sprintf("127.0.0.1:%d", port))
		}
	}
	if c.dir, err = os.MkdirTemp("", "weft-experiment-"); err == nil {
		err = os.Chmod(c.dir, 0o711) // the controller leaves root
	}
	return c, err
}

// Start is New and Run; on an error nothing is left.
func Start(ctx context.Context, cfg Config) (*Controller, error) {
	c, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if err := c.Run(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// Run starts the controller's processes and waits until switches can connect.
// After an error it is to be stopped too.
func (c *Controller) Run(ctx context.Context) (err error) {
	cfg := c.config
	measure.Differs(ctx, cfg.differs()...)
	args := []string{"up", "--data-dir", filepath.Join(c.dir, "data"), "--quiet"}
	if cfg.Plan == nil {
		args = append(args, "--listen", c.OpenFlow[0], "--http", c.North[0])
	} else {
		file := filepath.Join(c.dir, c.Name+".yaml")
		if err := os.WriteFile(file, []byte(cfg.Plan.at(c.OpenFlow, c.North).YAML()), 0o644); err != nil {
			return err
		}
		args = append(args, file)
	}
	program := c.program
	if len(cfg.Environment) > 0 {
		program, args = "env", slices.Concat(cfg.Environment, []string{program}, args)
	}
	if c.process, err = StartProcess(c.Name, cfg.CPU, program, args...); err != nil {
		return err
	}
	for _, address := range c.OpenFlow {
		if err := c.process.Accepts(ctx, address); err != nil {
			return err
		}
	}
	return nil
}

// at returns the plan with southbounds and northbounds, those of a partition
// each in the order of partitions, listening at the given addresses.
func (p Plan) at(openflow, north []string) Plan {
	workers := slices.Clone(p.Workers)
	set := func(w *Worker, service, key, value string) {
		all := map[string]map[string]string{}
		for name, keys := range w.Settings {
			all[name] = maps.Clone(keys)
		}
		if all[service] == nil {
			all[service] = map[string]string{}
		}
		all[service][key] = value
		w.Settings = all
	}
	for i := range workers {
		w := &workers[i]
		part := max(0, slices.IndexFunc(p.Partitions, func(part Partition) bool { return part.Name == w.Partition }))
		if slices.Contains(w.Services, "southbound") {
			set(w, "southbound", "listen", fmt.Sprintf("[%q]", "tcp:"+openflow[part]))
		}
		if slices.Contains(w.Services, "gateway") {
			set(w, "gateway", "listen", fmt.Sprintf("%q", north[part]))
		}
	}
	p.Workers = workers
	return p
}

// Stop ends the controller, all its processes, and removes its state.
func (c *Controller) Stop() {
	if c == nil {
		return
	}
	for _, conn := range c.conns {
		conn.Close()
	}
	c.process.Stop()
	os.RemoveAll(c.dir)
}

// CPUTime is the time of processors that all its processes have used.
func (c *Controller) CPUTime() time.Duration { return c.process.CPUTime() }

// CPUClock returns a function that returns the time of processors that the processes
// that there are now have used. It does not look for others, and so is quick.
func (c *Controller) CPUClock() func() time.Duration {
	list := c.process.All()
	return func() time.Duration { return cputime.Sum(list...) }
}

// Failed returns err with what the controller said last.
func (c *Controller) Failed(err error) error { return c.process.Failed(err) }

// dial returns the connections to the northbounds.
func (c *Controller) dial() ([]*grpc.ClientConn, error) {
	for len(c.conns) < len(c.North) {
		address := c.North[len(c.conns)]
		conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
		if err != nil {
			return nil, fmt.Errorf("connect to the northbound at %s: %w", address, err)
		}
		c.conns = append(c.conns, conn)
	}
	return c.conns, nil
}

// Dir is where it has its state.
func (c *Controller) Dir() string { return c.dir }

// PID is its first process's number.
func (c *Controller) PID() int { return c.process.PID() }

// Northbound returns the connection to the northbound, of several to the first
// partition's.
func (c *Controller) Northbound() (grpc.ClientConnInterface, error) {
	conns, err := c.dial()
	if err != nil {
		return nil, err
	}
	return conns[0], nil
}

// Instance is one live process of a controller: what `weft get workers` says.
type Instance struct {
	Name     string
	PID      int
	Services []string
}

// Workers returns the controller's live instances.
func (c *Controller) Workers(ctx context.Context) ([]Instance, error) {
	cmd := exec.CommandContext(ctx, c.program, "get", "workers", "-o", "json", "--server", "http://"+c.North[0])
	out, err := cmd.Output()
	if err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			err = errors.New(strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, fmt.Errorf("weft get workers: %w", err)
	}
	return parseWorkers(out)
}

// parseWorkers reads the instances out of what `weft get workers -o json`
// prints. Services are names, or values with a name.
func parseWorkers(out []byte) ([]Instance, error) {
	var answer struct {
		Workers []struct {
			Instance string            `json:"instance"`
			Process  string            `json:"process"`
			PID      json.Number       `json:"pid"`
			Services []json.RawMessage `json:"services"`
		} `json:"workers"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return nil, fmt.Errorf("weft get workers: %w", err)
	}
	var list []Instance
	for _, w := range answer.Workers {
		pid, _ := strconv.Atoi(w.PID.String()) // 0 of one that is not there
		in := Instance{Name: cmp.Or(w.Instance, w.Process), PID: pid}
		for _, raw := range w.Services {
			var name string
			if json.Unmarshal(raw, &name) != nil {
				var v struct {
					Name string `json:"name"`
				}
				if err := json.Unmarshal(raw, &v); err != nil {
					return nil, fmt.Errorf("weft get workers: services of %s: %w", cmp.Or(w.Instance, w.Process), err)
				}
				name = v.Name
			}
			in.Services = append(in.Services, name)
		}
		list = append(list, in)
	}
	return list, nil
}

// Metrics returns the sums of the controller's figures by name, labels left
// out, as /metrics has them; a northbound has those of all partitions.
func (c *Controller) Metrics(ctx context.Context) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.North[0]+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read the controller's metrics: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the controller's metrics: %s %v", resp.Status, err)
	}
	return parseMetrics(string(b)), nil
}

// parseMetrics sums figures up by name (Prometheus text format).
func parseMetrics(text string) map[string]float64 {
	sums := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name := line[:strings.IndexAny(line+" ", "{ ")]
		rest := line[len(name):]
		if i := strings.LastIndexByte(rest, '}'); i >= 0 {
			rest = rest[i+1:]
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		if v, err := strconv.ParseFloat(fields[0], 64); err == nil {
			sums[name] += v
		}
	}
	return sums
}

// sorted returns the keys of a map in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
