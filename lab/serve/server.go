// Package serve is the lab as a service of its machine: it answers the methods of
// api/lab.proto at a Unix socket, to the controller's gateway and to whoever may
// open the socket. It keeps no state of labs: those that weft lab up has made
// are there, and those that it has made are anyone's.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/machineservice"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/lab/testbed"
)

// What Options.Allow may name: each is to be root on the machine.
const (
	AllowExec    = "exec"    // consoles
	AllowCapture = "capture" // what passes interfaces
	AllowUp      = "up"      // labs up and changed
	AllowDown    = "down"    // labs down
	AllowRun     = "run"     // programs in the hosts of lab files
)

// Allowances are all of them.
func Allowances() []string { return []string{AllowExec, AllowCapture, AllowUp, AllowDown, AllowRun} }

// maxFile bounds a lab file, in octets, and bounds what is in it.
const maxFile = 1 << 20

func bounds() topology.Bounds { return topology.Bounds{Items: 200_000, Nodes: 10_000, Links: 20_000} }

// Options says what is served, where.
type Options struct {
	Socket string
	Group  string   // may open the socket, too; empty: none
	Allow  []string // of Allowances
	// Version and Program are of weft: what is run for keepers and in hosts.
	Version string
	Program string
	// SSHIdentity and SSHKnownHosts are files of ssh by which other machines are reached; empty:
	// none is.
	SSHIdentity   string
	SSHKnownHosts string
	Log           *slog.Logger
}

// Check says what is wrong with the options.
func (o Options) Check() error {
	for _, a := range o.Allow {
		if !slices.Contains(Allowances(), a) {
			return fmt.Errorf("--allow: %q cannot be allowed; allowed: %s", a, strings.Join(Allowances(), ", "))
		}
	}
	if (o.SSHIdentity == "") != (o.SSHKnownHosts == "") {
		return errors.New("an identity of ssh and the keys of the machines that it is for go together: give --ssh-identity and --ssh-known-hosts, or neither")
	}
	for _, path := range []string{o.SSHIdentity, o.SSHKnownHosts} {
		if path == "" {
			continue
		}
		if err := testbed.CheckFile(path); err != nil {
			return err
		}
	}
	return nil
}

// Run serves until ctx ends; labs go on after it, consoles and captures do not.
func Run(ctx context.Context, o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	if os.Getuid() != 0 {
		return errors.New("labs need root: run weft lab serve as root")
	}
	s := newServer(ctx, o)
	defer s.close()
	return s.service().Serve(ctx)
}

// server answers the methods of the service.
type server struct {
	api.UnimplementedLabServer
	o        Options
	ctx      context.Context // of jobs and consoles: they outlive requests
	consoles consoles
	jobs     jobs
	places   places
	usages   usages
	fars     fars
}

func newServer(ctx context.Context, o Options) *server {
	s := &server{o: o, ctx: ctx, fars: fars{of: map[string]*far{}}}
	s.places = newPlaces(s.o.Log)
	s.jobs.places, s.consoles.places = s.places.jobs, s.places.consoles
	return s
}

// close ends consoles, and waits for jobs, which end with the server's context.
func (s *server) close() {
	s.consoles.close()
	s.jobs.wg.Wait()
}

// serviceEnv is the environment variable by which what consoles and captures run is known
// as the service's; its value is the socket.
const serviceEnv = "WEFT_LAB_SERVICE"

func (o Options) mark() string { return serviceEnv + "=" + o.Socket }

func (s *server) service() machineservice.Service {
	return machineservice.Service{
		Socket: s.o.Socket, Group: s.o.Group, Log: s.o.Log,
		Begin: func(ctx context.Context) error {
			s.o.Log.Info("labs are served", "socket", s.o.Socket, "allow", strings.Join(s.o.Allow, ","))
			return machine.EndMarked(ctx, serviceEnv, s.o.Socket) // of a service that was killed
		},
		API: &api.Lab_ServiceDesc, Server: s,
		Streams: map[machineservice.Route]machineservice.StreamHandler{
			{Verb: "GET", Path: "/v1/lab/consoles/{console}"}: s.attach,
			{Verb: "GET", Path: "/v1/lab/labs/{lab}/capture"}: s.capture,
		},
	}
}

// allow returns an error unless the service allows something.
func (o Options) allow(what string) error {
	if slices.Contains(o.Allow, what) {
		return nil
	}
	return api.Errorf(codes.PermissionDenied,
		"the lab service of this machine does not allow %s, which is to be root on it: start it with `weft lab serve --allow %s`",
		what, strings.Join(append(slices.Clone(o.Allow), what), ","))
}

// open returns the lab of a name.
func open(name string) (*lab.Lab, error) {
	if testbed.Exists(name) {
		return nil, api.Errorf(codes.FailedPrecondition, "lab %s is on several machines, where this does not work: use weft lab on the machine of the node", name)
	}
	l, err := lab.Open(name)
	if err != nil {
		return nil, api.Errorf(codes.NotFound, "%w", err)
	}
	return l, nil
}

// GetLabService answers what the service is (api.LabServer).
func (s *server) GetLabService(context.Context, *api.GetLabServiceRequest) (*api.LabServiceInfo, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return &api.LabServiceInfo{
		Version: s.o.Version, Machine: name, Allowed: slices.Clone(s.o.Allow),
		MostConsoles: maxConsoles, MostCaptures: maxCaptures,
	}, nil
}
