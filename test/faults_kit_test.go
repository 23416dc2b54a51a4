package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/test/testbed"
)

// TestFaults has controllers of several processes suffer, under 2,000
// packet-ins a second and beside real switches whose established flows must
// not notice. The programs under test are built once and are real processes.
// Each fault that needs no other build is seen over one transport, and each transport under a fault;
// everyPair has every fault over every transport.
func TestFaults(t *testing.T) {
	t.Parallel()
	f := newFaults(t)
	for _, fault := range []struct {
		name, transport string // the transport in make test, if it is there
		run             func(*testing.T, string)
	}{
		{"killed", "grpc", f.killed},
		{"stopped", "ws", f.stopped},
		{"supervisor", "shm", f.supervisorKilled},
		{"external", "nats", f.externalRestarted},
		{"partition", "rest", f.partitioned},
		{"previous", "", f.previousBuild}, // the program of an earlier commit is built
		{"clock", "", f.clockOff},         // the program and all below it are built anew
	} {
		for _, transport := range plan.Transports() {
			if transport == plan.SHM && slices.Contains([]string{"partition", "previous", "clock"}, fault.name) {
				continue // their plans say that there are several machines
			}
			if everyPair || transport == fault.transport {
				t.Run(fault.name+"/"+transport, func(t *testing.T) { t.Parallel(); fault.run(t, transport) })
			}
		}
	}
	t.Run("intake", func(t *testing.T) { t.Parallel(); f.intakeKilled(t) })
	t.Run("standby", func(t *testing.T) { t.Parallel(); f.standby(t) })
	t.Run("forwarding", func(t *testing.T) { t.Parallel(); f.forwardingKilled(t) })
	t.Run("paths", func(t *testing.T) { t.Parallel(); f.pathsStopped(t) })
	t.Run("moved", func(t *testing.T) { t.Parallel(); f.moved(t) })
	t.Run("applied", func(t *testing.T) { t.Parallel(); f.applied(t) })
}

// faults is what all of TestFaults shares.
type faults struct {
	dir  string
	weft string // the program

	builds otherBuilds
}

// newFaults returns a folder that others may enter, with the program in it.
func newFaults(t *testing.T) *faults {
	t.Helper()
	f := &faults{dir: openDir(t)}
	f.weft = filepath.Join(f.dir, "weft")
	b, err := os.ReadFile(testprogram.Weft(t))
	if err != nil {
		t.Fatal(err)
	}
	testprogram.Install(t, f.weft, b)
	return f
}

// build builds cmd/weft of a module in a folder, with more arguments for go
// build, and returns the program.
func (f *faults) build(t *testing.T, name, folder string, args ...string) string {
	t.Helper()
	program := filepath.Join(f.dir, name)
	cmd := exec.CommandContext(t.Context(), "go", slices.Concat([]string{"build", "-o", program}, args, []string{testprogram.Package})...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build of %s: %v\n%s", name, err, out)
	}
	return program
}

// fourWorkers is a plan in which a packet-in crosses twice, and the northbound is
// apart.
func fourWorkers(transport, events string) string {
	return fmt.Sprintf("name: faults\ntransport: %s\nevents: %s\n", transport, events) + `workers:
  southbound: {services: [southbound]}
  topology: {services: [discovery, hosts]}
  routing: {services: [paths, forwarding]}
  north: {services: [flowrules, stats, gateway]}
`
}

// deployment is a controller of several processes.
type deployment struct {
	t               *testing.T
	weft            string // the program
	dir             string
	openflow, north string // addresses
	plan            string // file
	flags           []string
	several         bool               // the plan has several southbounds, and says where each listens
	namespace       string             // in which it runs; empty is that of the test
	started         []*testbed.Process // by us: supervisors, workers by hand
	conn            *grpc.ClientConn
}

// prepare makes a deployment that does not run yet.
func (f *faults) prepare(t *testing.T, text string, flags ...string) *deployment {
	t.Helper()
	d := &deployment{t: t, weft: f.weft, dir: openDir(t), openflow: freeAddress(t), north: freeAddress(t), flags: flags}
	d.plan = d.write("plan.yaml", text)
	conn, err := grpc.NewClient("passthrough:///"+d.north, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(d.dial))
	if err != nil {
		t.Fatal(err)
	}
	d.conn = conn
	t.Cleanup(func() {
		conn.Close()
		for _, p := range slices.Backward(d.started) {
			p.Stop()
		}
		for name, pid := range d.pids() { // of a supervisor that was killed
			t.Errorf("worker %s, process %d, was left over", name, pid)
			_ = syscall.Kill(pid, syscall.SIGKILL) // that it has ended meanwhile is all right
		}
	})
	return d
}

// deploy starts a controller and waits until all of it is up.
func (f *faults) deploy(t *testing.T, text string, flags ...string) *deployment {
	t.Helper()
	d := f.prepare(t, text, flags...)
	d.supervise()
	d.allUp()
	return d
}

func (d *deployment) write(name, text string) string {
	d.t.Helper()
	file := filepath.Join(d.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
	return file
}

// run starts a process of the program, which ends with the test.
func (d *deployment) run(name, program string, args ...string) *testbed.Process {
	d.t.Helper()
	p, err := testbed.StartProcess(name, -1, program, args...)
	if err != nil {
		d.t.Fatal(err)
	}
	d.started = append(d.started, p)
	return p
}

// supervise starts weft up.
func (d *deployment) supervise() *testbed.Process {
	d.t.Helper()
	args := []string{"up", d.plan, "--data-dir", filepath.Join(d.dir, "data"), "--quiet"}
	if d.several {
		args = append(args, "--set", "gateway.listen="+d.north)
	} else {
		args = append(args, "--listen", d.openflow, "--http", d.north)
	}
	command := within(d.namespace, slices.Concat([]string{d.weft}, args, d.flags)...)
	return d.run("supervisor", command[0], command[1:]...)
}

// bus returns the address of the embedded bus, and the file with its secret.
func (d *deployment) bus() (url, secret string) {
	d.t.Helper()
	var address []byte
	eventually(d.t, "the supervisor's bus open", func() bool {
		address, _ = os.ReadFile(filepath.Join(d.dir, "data", "bus.address"))
		secret, err := os.ReadFile(filepath.Join(d.dir, "data", "bus.secret"))
		return len(address) > 0 && err == nil && len(secret) > 0
	})
	return "nats://" + string(address), filepath.Join(d.dir, "data", "bus.secret")
}

// byHand starts weft worker with a program.
func (d *deployment) byHand(process, program string, args ...string) *testbed.Process {
	d.t.Helper()
	url, secret := d.bus()
	return d.run(process, program, append([]string{
		"worker", "--process", process, "--bus", url, "--bus-token-file", secret, "--log-level", "warn",
		"--set", fmt.Sprintf("southbound.listen=[%q]", "tcp:"+d.openflow), "--set", "gateway.listen=" + d.north,
	}, args...)...)
}

// pids returns the controller's workers that run, as the kernel knows them: by
// the address that is in the arguments of all of them.
func (d *deployment) pids() map[string]int {
	list := map[string]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		b, err := os.ReadFile(file) // empty of one that has ended
		if err != nil || !bytes.Contains(b, []byte(d.openflow)) && !(d.several && bytes.Contains(b, []byte(d.north))) {
			continue
		}
		args := strings.Split(string(b), "\x00")
		if len(args) < 4 || args[1] != "worker" || args[2] != "--process" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil {
			list[args[3]] = pid
		}
	}
	return list
}

// workers is what weft get workers -o json says.
func (d *deployment) workers(ctx context.Context) (*api.ListWorkersResponse, error) {
	out, err := d.command(ctx, "get", "workers", "-o", "json")
	if err != nil {
		return nil, err
	}
	m := &api.ListWorkersResponse{}
	if err := protojson.Unmarshal(out, m); err != nil {
		return nil, fmt.Errorf("weft get workers: %w", err)
	}
	return m, nil
}

// command runs a command of weft's against the northbound.
func (d *deployment) command(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, testwait.Limit)
	defer cancel()
	line := within(d.namespace, slices.Concat([]string{d.weft}, args, []string{"--server", "http://" + d.north})...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return nil, fmt.Errorf("weft %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// allUp waits until all processes of the plan are up and have carried it out.
func (d *deployment) allUp() *api.ListWorkersResponse {
	d.t.Helper()
	var m *api.ListWorkersResponse
	why := ""
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(50 * time.Millisecond) {
		var err error
		if m, err = d.workers(context.Background()); err != nil {
			why = err.Error()
		} else if why = notUp(m); why == "" {
			return m
		}
		for _, p := range d.started {
			if p.Ended() != nil {
				d.t.Log(p.Failed(p.Ended()))
			}
		}
		if time.Now().After(end) {
			d.t.Fatalf("not all processes are up: %s\n%s", why, d.logs())
		}
	}
}

// notUp says which process is not up, none if empty.
func notUp(m *api.ListWorkersResponse) string {
	for _, w := range m.Workers {
		if w.State != "up" || !w.Current {
			return fmt.Sprintf("%s is %s, plan carried out: %v", w.Process, w.State, w.Current)
		}
	}
	return ""
}

// logs returns the end of what the processes have said.
func (d *deployment) logs() string {
	var b strings.Builder
	for _, p := range d.started {
		fmt.Fprintln(&b, p.Failed(errors.New("what it said")))
	}
	files, _ := filepath.Glob(filepath.Join(d.dir, "data", "workers", "*.log"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			fmt.Fprintf(&b, "%s:\n%s\n", filepath.Base(file), text[max(0, len(text)-2000):])
		}
	}
	return b.String()
}

// figures returns the controller's counters by name, labels included, in all
// its processes.
func (d *deployment) figures() (map[string]float64, error) {
	client := &http.Client{Timeout: testwait.Limit, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, address string) (net.Conn, error) { return d.dial(ctx, address) },
	}}
	resp, err := client.Get("http://" + d.north + "/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: %s", resp.Status)
	}
	list := map[string]float64{}
	for _, m := range figure.FindAllStringSubmatch(b.String(), -1) {
		if v, err := strconv.ParseFloat(m[2], 64); err == nil {
			list[m[1]] = v
		}
	}
	return list, nil
}

// allFigures is figures of all processes that run: those of one that takes longer
// than a second to tell them are missing from what the controller says, so it is
// asked again.
func (d *deployment) allFigures() (list map[string]float64) {
	d.t.Helper()
	eventually(d.t, "figures of all processes", func() bool {
		var err error
		if list, err = d.figures(); err != nil {
			return false
		}
		told := map[string]bool{}
		for key := range list {
			if m := processOf.FindStringSubmatch(key); m != nil {
				told[m[1]] = true
			}
		}
		for process := range d.pids() {
			if !told[process] {
				return false
			}
		}
		return true
	})
	return list
}

var processOf = regexp.MustCompile(`process="([^"]*)"`)

var figure = regexp.MustCompile(`(?m)^([a-z]\S*(?:\{.*\})?) (\S+)$`)

// network brings real switches up for the controller, and waits until it knows
// them and all hosts have spoken.
func (d *deployment) network(spec string) *lab.Lab {
	d.t.Helper()
	l := d.quiet(spec, d.openflow)
	pingAll(d.t, l, false)
	return l
}

// quiet is network whose hosts have not spoken, with switches that connect to
// all of the given addresses.
func (d *deployment) quiet(spec string, addresses ...string) *lab.Lab {
	d.t.Helper()
	var controllers []string
	for _, a := range addresses {
		controllers = append(controllers, "tcp:"+a)
	}
	topo, err := topology.Resolve(spec)
	if err != nil {
		d.t.Fatal(err)
	}
	l, err := lab.Up(context.Background(), topo, lab.Options{
		Name: fmt.Sprintf("f%d", time.Now().UnixNano()%1e9), Temporary: true, Controllers: controllers, KeeperCommand: []string{os.Args[0]},
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if err := l.Down(context.Background()); err != nil {
			d.t.Error(err)
		}
	})
	d.whole(l)
	return l
}

// whole waits until the controller knows all links and hosts' ports of a network,
// and floods in all of it.
func (d *deployment) whole(l *lab.Lab) {
	d.t.Helper()
	topo := l.Topology()
	links, roles, flooding := api.NewDiscoveryClient(d.conn), api.NewDiscoveryClient(d.conn), api.NewForwardingClient(d.conn)
	eventually(d.t, "the network known", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		up, edges := 0, 0
		found, err := links.ListLinks(ctx, &api.ListLinksRequest{})
		for _, x := range found.GetLinks() {
			if x.State == "up" {
				up++
			}
		}
		ports, err2 := roles.ListPortRoles(ctx, &api.ListPortRolesRequest{})
		for _, p := range ports.GetPorts() {
			if p.Role == "edge" {
				edges++
			}
		}
		tree, err3 := flooding.GetFlooding(ctx, &api.GetFloodingRequest{})
		return errors.Join(err, err2, err3) == nil && up == 2*len(topo.Links) && edges >= len(topo.Hosts) &&
			tree.Committed == tree.Wanted && len(tree.Ports) >= 2*(len(topo.Switches)-1) && d.pathsLead(2*len(topo.Links))
	})
	// What was the tree before paths had all links is none that lasts.
	trees := api.NewPathsClient(d.conn)
	eventually(d.t, "the broadcast tree in force", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		want, err := trees.GetTree(ctx, &api.GetTreeRequest{})
		have, err2 := flooding.GetFlooding(ctx, &api.GetFloodingRequest{})
		return errors.Join(err, err2) == nil && have.Committed == have.Wanted && maps.Equal(portsOf(want.Ports), portsOf(have.Ports))
	})
}

// pathsLead reports whether paths lead over so many links, of which discovery
// tells before paths has them. Builds that do not tell are taken to.
func (d *deployment) pathsLead(links int) bool {
	figures, err := d.figures()
	if err != nil {
		return false
	}
	told, sum := false, 0.0
	for key, v := range figures {
		if strings.HasPrefix(key, "weft_paths_links") {
			told = true
			sum += v
		}
	}
	return !told || sum >= float64(links)
}

// openDir returns a directory that goes with the test, as t.TempDir does, and that
// users other than root can get to: controllers leave root.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}
