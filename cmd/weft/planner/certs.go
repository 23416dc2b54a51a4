package planner

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/deploy/certs"
	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/plan"
)

func CertsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certs",
		Short: "Make the certificates of controller, switches, workers and apps",
		Long: `Make certificates with an authority of your own in a directory: those by which
controller and switches know each other, and clients the controller; and those
by which workers and apps know each other. Without the latter, workers talk to
this machine only.

The directory has ca.crt, ca.key, and NAME.crt and NAME.key for each of them. A
machine needs ca.crt and the two files of what runs there; keep ca.key where you
issue certificates. Connections made after a file is replaced have the new
certificate: no restart is needed.`,
		Example: `  weft certs init --dir certs
  weft certs plan split --dir certs
  weft certs show certs/southbound.crt`,
	}
	cmd.AddCommand(certsInit(), certsController(), certsSwitch(), certsIssue(), certsPlan(), certsRenew(), certsShow())
	return cmd
}

// Issued is one certificate in the answer of a command that issues.
type Issued struct {
	Name       string   `json:"name"`
	File       string   `json:"file"`
	Action     string   `json:"action"` // made, issued or kept
	Identities []string `json:"identities"`
	Until      string   `json:"until"` // RFC 3339
}

// certsFlags are those of all commands that write.
type certsFlags struct {
	dir   string
	force bool
	out   cli.Output
}

func (f *certsFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "dir", "certs", "directory of the authority and what it issues")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace files that exist")
	cmd.MarkFlagDirname("dir")
	f.out.Flag(cmd)
}

// print shows the contents of the directory; actions are the actions taken, by name.
func (f *certsFlags) print(cmd *cobra.Command, names []string, actions map[string]string) error {
	list := []Issued{}
	for _, name := range names {
		path := certs.File(f.dir, name)
		info, err := certs.Read(path)
		if err != nil {
			return err
		}
		list = append(list, Issued{name, path, actions[name], info[0].Identities, info[0].Until.Format(time.RFC3339)})
	}
	return f.out.Print(cmd, list, func(t *cli.Table) {
		t.Row("NAME", "FILE", "ACTION", "IDENTITIES", "UNTIL")
		for _, i := range list {
			t.Row(i.Name, i.File, i.Action, strings.Join(i.Identities, " "), cli.When(i.Until))
		}
	})
}

func certsInit() *cobra.Command {
	var f certsFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make an authority",
		Long: `Make an authority: ca.crt and ca.key, ECDSA P-256, for ten years. With --force
one that exists is replaced; what that one has issued is worth nothing then, and
is to be issued again.`,
		Example: "  weft certs init --dir certs",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := certs.Init(f.dir, certs.Force(f.force)); err != nil {
				return err
			}
			return f.print(cmd, []string{"ca"}, map[string]string{"ca": "made"})
		},
	}
	f.flags(cmd)
	return cmd
}

func certsIssue() *cobra.Command {
	var f certsFlags
	var services, hosts []string
	var app bool
	var role string
	days := 365
	cmd := &cobra.Command{
		Use:   "issue NAME...",
		Short: "Issue certificates for workers or apps",
		Long: `Issue a certificate for each NAME, a worker's or with --app that of an app
outside, which says weft://worker/NAME or weft://app/NAME, and
weft://service/SERVICE for each --service that it may speak for. It is good for
clients and servers, and never longer than the authority.

With --role it is that of a client of the controller's northbound, such as a
person or weft node run, says weft://client/NAME and weft://role/ROLE, and is
good for clients only. The configuration gateway.client_authority names the
authority whose certificates the controller takes.`,
		Example: `  weft certs issue --dir certs southbound --service southbound --service discovery
  weft certs issue --dir certs routing-1 routing-2 --service paths --host 10.0.0.7 --host node7
  weft certs issue --dir certs ids --app
  weft certs issue --dir certs node7 --role node --days 30`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			if days < 1 {
				return cli.Usagef(cmd, "days %d; allowed: 1 and more", days)
			}
			kind := certs.Worker
			switch {
			case app && role != "":
				return cli.Usagef(cmd, "--app and --role: give one of them")
			case app:
				kind = certs.App
			case role != "":
				kind = certs.Client
			}
			var requests []certs.Request
			actions := map[string]string{}
			for _, name := range names {
				requests = append(requests, certs.Request{
					Name: name, Kind: kind, Role: role, Services: services, Hosts: hosts, Validity: time.Duration(days) * 24 * time.Hour, Force: certs.Force(f.force),
				})
				actions[name] = "issued"
			}
			if err := certs.Issue(f.dir, requests...); err != nil {
				return err
			}
			return f.print(cmd, names, actions)
		},
	}
	f.flags(cmd)
	cmd.Flags().StringArrayVar(&services, "service", nil, "a service for which it may speak; may be given several times")
	cmd.Flags().StringArrayVar(&hosts, "host", nil, "a name or address of its machine; may be given several times (default "+strings.Join([]string{"localhost", "127.0.0.1", "::1"}, ", ")+" and the host name)")
	cmd.Flags().BoolVar(&app, "app", false, "for apps outside, not workers")
	cmd.Flags().StringVar(&role, "role", "", "for clients of the northbound, with this role: "+strings.Join(certs.Roles, ", "))
	cmd.Flags().IntVar(&days, "days", days, "validity in days")
	return cmd
}

func certsPlan() *cobra.Command {
	var f certsFlags
	cmd := &cobra.Command{
		Use:   "plan PLAN",
		Short: "Issue certificates for all workers of a plan",
		Long: `Issue a certificate for every process of a plan, built in or a file, with the
services that run in it, and for the supervisor. One that exists and is as the
plan wants it is kept; one that is not, or soon expires, is an error without
--force.`,
		Example: `  weft certs plan split --dir certs
  weft certs plan cluster.yaml --dir certs --force`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(plans.Names(), cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := ReadPlan(args[0])
			if err != nil {
				return err
			}
			names, actions, err := issuePlan(f.dir, p, certs.Force(f.force))
			if err != nil {
				return err
			}
			return f.print(cmd, names, actions)
		},
	}
	f.flags(cmd)
	return cmd
}

// SupervisorName is the name of the supervisor's certificate, by which it talks
// to the workers.
const SupervisorName = "supervisor"

// issuePlan issues the certificates of a plan; actions are the actions taken, by name.
func issuePlan(dir string, p *plan.Plan, force certs.Force) (names []string, actions map[string]string, err error) {
	actions = map[string]string{}
	var requests []certs.Request
	var errs []error
	for _, i := range p.Instances() {
		requests = append(requests, certs.Request{Name: i.Name, Services: i.Services, Hosts: hostsOf(p.Worker(i.Worker)), Force: force})
	}
	if _, ok := p.Of(SupervisorName); !ok {
		requests = append(requests, certs.Request{Name: SupervisorName, Hosts: certs.DefaultHosts(), Force: force})
	}
	requests = slices.DeleteFunc(requests, func(r certs.Request) bool {
		names = append(names, r.Name)
		unfit := certs.Fits(dir, r)
		switch {
		case unfit == nil:
			actions[r.Name] = "kept"
		case !errors.Is(unfit, fs.ErrNotExist) && !bool(force):
			errs = append(errs, fmt.Errorf("%w; --force replaces it", unfit))
		default:
			actions[r.Name] = "issued"
		}
		return actions[r.Name] != "issued"
	})
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	return names, actions, certs.Issue(dir, requests...)
}

// hostsOf returns the names and addresses of a worker's machine, as far as the
// plan says them.
func hostsOf(w *plan.Worker) []string {
	hosts := certs.DefaultHosts()
	if w.Machine != "" {
		hosts = append([]string{"localhost", "127.0.0.1", "::1"}, w.Machine)
	}
	host, _, err := net.SplitHostPort(w.Listen)
	if ip, e := netip.ParseAddr(host); err == nil && host != "" && (e != nil || !ip.IsUnspecified()) && !slices.Contains(hosts, host) {
		hosts = append(hosts, host)
	}
	return hosts
}

// shown is a certificate in the answer of show.
type shown struct {
	File string `json:"file"`
	certs.Info
}

func certsShow() *cobra.Command {
	var out cli.Output
	cmd := &cobra.Command{
		Use:     "show FILE...",
		Short:   "Show what certificates say, and for how long they are valid",
		Example: "  weft certs show certs/ca.crt certs/southbound.crt -o json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			list := []shown{}
			for _, path := range paths {
				infos, err := certs.Read(path)
				if err != nil {
					return err
				}
				for _, i := range infos {
					list = append(list, shown{path, i})
				}
			}
			return out.Print(cmd, list, func(t *cli.Table) {
				t.Row("FILE", "SUBJECT", "ISSUER", "IDENTITIES", "HOSTS", "FROM", "UNTIL", "DAYS LEFT")
				for _, s := range list {
					left := fmt.Sprint(s.DaysLeft)
					if s.DaysLeft < 0 {
						left = "expired"
					}
					t.Row(s.File, s.Subject, s.Issuer, strings.Join(s.Identities, " "), strings.Join(s.Hosts, " "),
						cli.When(s.From.Format(time.RFC3339)), cli.When(s.Until.Format(time.RFC3339)), left)
				}
			})
		},
	}
	out.Flag(cmd)
	return cmd
}
