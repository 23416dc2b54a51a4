package command

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/document"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/keeper"

	"github.com/weft-sdn/weft/lab/layout"

	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/lab/testbed"
)

// labCommand is `weft lab`: networks of real switches on this machine.
func labCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Make networks of real switches and hosts on this machine",
		Long: `Make networks of real Open vSwitch switches and hosts (network namespaces) on
this machine, from a topology file or a generator, for any OpenFlow controller.
Several labs run side by side. Needs root and the Debian package
openvswitch-switch; nothing of the machine's own Open vSwitch is touched.`,
		Example: `  weft lab up ring:10
  weft lab ping --all
  weft lab link s1 s2 down
  weft lab exec h1 -- tcpdump -ni eth0
  weft lab down ring-10`,
	}
	cmd.AddCommand(labUpCommand(), labApplyCommand(), labMapCommand(), labDownCommand(), labPruneCommand(), labListCommand(), labShowCommand(), labNodesCommand(), labLogsCommand(), labExecCommand(), labShellCommand(), labAttendCommand(), labCaptureCommand(), labUsageCommand(), labSetupCommand(), labPingCommand(),
		labIperfCommand(), labTrafficCommand(), labTrafficEndsCommand(), labLinkCommand(), labGraphCommand(), labServeCommand(), labKeeperCommand())
	return cmd
}

func labUpCommand() *cobra.Command {
	var name, output string
	var controllers []string
	var certsDir, certName, machines string
	var source labSource
	cmd := &cobra.Command{
		Use:   "up TOPOLOGY",
		Short: "Bring a lab up",
		Long: `Bring a lab up: switches, hosts and links, and the switches' connection to the
controller, which need not run yet. Switches of different labs have the same
datapath ids unless their topology files say otherwise: give each lab a
controller of its own.

The programs of hosts (run:) are started and watched until the lab is taken
down: see weft lab show and weft lab logs. If one of them dies within its first
second, the exit status is 1, and the lab is up all the same.

With --machines the lab is spread over machines that are reached by ssh, with tunnels
(VXLAN) between them: see weft lab map for the file and for which node goes where. This
program is copied to them, into /var/cache/weft; they need root (or sudo without a
password), sshd, and openvswitch-switch and nftables. If it fails on one, it is taken
down on all. The part on machine M is a lab there, named NAME-M.

TOPOLOGY is - for a file on standard input, or one of the forms below. Files are
` + topology.FileForms + `;
what the text is says which. In drawings each node is a switch with a host, and
coordinates give delays. In containerlab's files nodes that a lab cannot run are asked
about: answer by --as.
  ` + strings.ReplaceAll(topology.SpecForms, ", ", "\n  ") + `

Switches of kind hybrid, router and bridge, hosts with gateway: true, and routing:,
control: and ovs: make a provider's network of hybrid IP/SDN nodes, which needs the
Debian package frr, too: see docs/guide/carrier.md, and weft lab nodes.

A topology file, every key but name, a, b and switch being optional:

  name: triangle
  controller: tcp:127.0.0.1:6653       # or a list
  switches:
    - {name: s1}
    - {name: s2, dpid: 0x2, protocols: [OpenFlow13], fail_mode: secure}
    - {name: s3}
  hosts:
    - {name: h1, switch: s1, run: [python3 -m http.server 80]}
    - {name: h2, switch: s2, port: 1, mac: "02:00:00:00:00:02", ipv4: 10.0.0.2/24, ipv6: fd00::2/64, vlan: 10}
  links:
    - {a: s1, b: s2, rate: 100mbit, delay: 5ms, jitter: 1ms, loss: 1%}
    - {a: s2, b: s3, a_port: 7, b_port: 7, mtu: 9000}
    - {a: s3, b: s1}`,
		Example: `  weft lab up demo
  weft lab up fattree:4 --name dc --controller tcp:127.0.0.1:6633
  weft lab up oshi                      # seven hybrid nodes and their customers
  weft lab up graphml:Colt.graphml --hybrid
  weft lab up srl02.clab.yml --as nokia_srlinux=router
  weft lab up fattree:4 --machines machines.yaml --controller tcp:192.0.2.9:6653
  weft lab up 5gc:3                     # an NRF, and three each of AMF, SMF, AUSF, UDM and PCF
  weft lab up triangle.yaml --controller tcp:127.0.0.1:6653 --controller tcp:127.0.0.1:6654
  weft certs switch 1 2 3 --together ring
  weft lab up ring:3 --controller ssl:127.0.0.1:6653 --certs certs --cert ring`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: labForms,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := labCheckOutput(output); err != nil {
				return err
			}
			if err := labCheckUp(cmd, name, controllers); err != nil {
				return err
			}
			topo, err := source.read(cmd, args[0])
			if err != nil {
				return err
			}
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			start := time.Now()
			up := labUpResult{Name: cmp.Or(name, topo.Name)}
			if machines != "" {
				if certsDir != "" {
					return errors.New("--certs does not go with --machines: their labs reach controllers by tcp: only")
				}
				topo.Name = up.Name
				l, err := labFarUp(ctx, cmd, topo, machines, testbed.Options{Controllers: controllers, Program: exe})
				if err != nil {
					return err
				}
				up.of(l.Topology, start)
				up.Controllers, up.Mapping = l.Controllers(), l.Mapping
				return errors.Join(append(l.Died, labPrintUp(cmd, output, up))...)
			}
			if testbed.Exists(up.Name) {
				return fmt.Errorf("lab %s is up already, on several machines: take it down with `weft lab down %s`, or give this one another name by --name", up.Name, up.Name)
			}
			progress := cli.NewProgress(cmd.ErrOrStderr())
			defer progress.Stop()
			l, err := lab.Up(ctx, topo, lab.Options{
				Name: name, Controllers: controllers, TLS: labTLS(certsDir, certName),
				KeeperCommand: []string{exe, "lab", "keeper"}, Weft: exe,
				Progress: progress.Doing,
			})
			if err != nil {
				return err
			}
			progress.Stop()
			up.of(l.Topology(), start)
			up.ControllerSocket = l.ControllerSocket()
			if err := labPrintUp(cmd, output, up); err != nil {
				return err
			}
			return labDied(ctx, l)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the lab's name (default: the topology's)")
	cmd.Flags().StringArrayVar(&controllers, "controller", nil,
		"the controller's address: tcp:HOST:PORT, ssl:HOST:PORT, unix:PATH, direct (it listens on the lab's ctl.sock itself) or none; may be repeated (default: the topology's, or "+topology.DefaultController+")")
	source.flags(cmd)
	labMachinesFlag(cmd, &machines)
	cmd.Flags().StringVar(&certsDir, "certs", "", "directory with the switches' certificate, for controllers with ssl: (weft certs switch DPID... --together NAME)")
	cmd.Flags().StringVar(&certName, "cert", "lab", "name of the certificate in --certs, for all of the lab's switches")
	cmd.MarkFlagDirname("certs")
	labOutputFlag(cmd, &output)
	return cmd
}

// labCheckUp says which flag of weft lab up is wrong.
func labCheckUp(cmd *cobra.Command, name string, controllers []string) error {
	if name != "" {
		if err := topology.CheckName(name); err != nil {
			return cli.Usagef(cmd, "--name: %v", err)
		}
	}
	for _, c := range controllers {
		if err := topology.CheckController(c); err != nil {
			return cli.Usagef(cmd, "--controller: %v; allowed: %s", err, topology.ControllerForms)
		}
	}
	return nil
}

// labTLS returns the files of a certificate in a directory; nil without one.
func labTLS(dir, name string) *layout.TLS {
	if dir == "" {
		return nil
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	return &layout.TLS{Certificate: file(name + ".crt"), Key: file(name + ".key"), Authority: file("ca.crt")}
}

type labUpResult struct {
	Name             string   `json:"name"`
	Switches         int      `json:"switches"`
	Hosts            int      `json:"hosts"`
	Links            int      `json:"links"`
	Controllers      []string `json:"controllers"`
	ControllerSocket string   `json:"controller_socket"`
	Seconds          float64  `json:"seconds"`
	Remarks          []string `json:"remarks,omitempty"`
	*testbed.Mapping          // of a lab on several machines
}

func (r *labUpResult) of(t *topology.Topology, start time.Time) {
	r.Name, r.Switches, r.Hosts, r.Links = t.Name, len(t.Switches), len(t.Hosts), len(t.Links)
	r.Controllers, r.Seconds, r.Remarks = t.Controllers, time.Since(start).Seconds(), topology.Remarks(t)
}

func labPrintUp(cmd *cobra.Command, output string, up labUpResult) error {
	return labPrint(cmd.OutOrStdout(), output, up, func(w *labTable) {
		fmt.Fprintf(w, "lab %s is up: %d switches, %d hosts, %d links between switches, in %.1f s\n",
			up.Name, up.Switches, up.Hosts, up.Links, up.Seconds)
		fmt.Fprintf(w, "controller: %s\n", strings.Join(up.Controllers, ", "))
		for _, r := range up.Remarks {
			fmt.Fprintln(w, "remark:", r)
		}
		if up.Mapping != nil {
			for _, l := range up.Loads {
				fmt.Fprintf(w, "machine %s: %d nodes, %d links to others\n", l.Machine, l.Nodes, l.Cut)
			}
		}
	})
}

func labDownCommand() *cobra.Command {
	var all, forget, lenient bool
	var output string
	cmd := &cobra.Command{
		Use:   "down [NAME]",
		Short: "Take a lab down, leaving nothing of it",
		Long: `Take a lab down: its switches, its hosts with whatever runs in them, its files.
Works on labs half made, too, and on those whose maker was killed. A lab on several
machines is taken down on each; one that cannot be reached keeps the lab known, for
another try. If nothing is there of a lab of that name, the exit status is 1, with
--ignore-not-found 0.`,
		Example: `  weft lab down ring-10
  weft lab down --all`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return cli.Usagef(cmd, "name the one lab to take down, or all of them by --all")
			}
			if err := labCheckOutput(output); err != nil {
				return err
			}
			if !all {
				if err := topology.CheckName(args[0]); err != nil {
					return cli.Usagef(cmd, "%v", err)
				}
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			progress := cli.NewProgress(cmd.ErrOrStderr())
			defer progress.Stop()
			progress.Doing("taking down")
			result := labDownResult{Down: []string{}}
			var err error
			switch {
			case all:
				result.Down, err = labDownAll(ctx, forget)
			case lab.Exists(args[0]) || testbed.Exists(args[0]):
				result.Down = args
				err = labDownAny(ctx, args[0], forget)
			default: // processes and namespaces may be left of it
				var left bool
				if left, err = lab.HasRemains(args[0]); err != nil {
					break
				}
				if err = labDownAny(ctx, args[0], forget); left {
					result.Down = args
				} else if err == nil && !lenient {
					err = labAbsent(args[0])
				}
			}
			if err != nil {
				return err
			}
			progress.Stop()
			return labPrint(cmd.OutOrStdout(), output, result, func(w *labTable) {
				for _, name := range result.Down {
					fmt.Fprintf(w, "lab %s is down\n", name)
				}
				if len(result.Down) == 0 {
					fmt.Fprintln(w, "no lab was up")
				}
			})
		},
	}
	labOutputFlag(cmd, &output)
	cmd.Flags().BoolVar(&all, "all", false, "take every lab down")
	cmd.Flags().BoolVar(&lenient, "ignore-not-found", false, "succeed if there is no lab of that name")
	cmd.Flags().BoolVar(&forget, "forget", false, "of a lab on several machines: know it no more, even if a machine cannot be reached")
	return cmd
}

// labAbsent is the error of a lab that is not there. It names those that are.
func labAbsent(name string) error {
	far, err := testbed.Names()
	here, err2 := machine.Names()
	if err := cmp.Or(err, err2); err != nil {
		return err
	}
	if all := append(here, far...); len(all) > 0 {
		return fmt.Errorf("no lab %s is up; up: %s%s", name, strings.Join(all, ", "), document.Meant(name, all))
	}
	return fmt.Errorf("no lab %s is up, nor any other", name)
}

type labDownResult struct {
	Down []string `json:"down"`
}

func labListCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the labs that are up",
		Example: "  weft lab list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			labs, err := labListAll(cmd.Context())
			if err != nil {
				return err
			}
			return labPrint(cmd.OutOrStdout(), output, labs, func(w *labTable) {
				w.row("NAME", "STATE", "SWITCHES", "HOSTS", "LINKS", "PROGRAMS", "CONTROLLERS", "SINCE")
				for _, l := range labs {
					programs := ""
					switch {
					case l.Programs > 0 && l.State == "up":
						programs = fmt.Sprintf("%d of %d run", l.Running, l.Programs)
					case l.Programs > 0:
						programs = fmt.Sprint(l.Programs)
					}
					w.row(l.Name, l.State, l.Switches, l.Hosts, l.Links, programs, strings.Join(l.Controllers, " "), l.Created.Format(time.DateTime))
				}
				for _, l := range labs {
					if remedy := labRemedy(l); remedy != "" {
						fmt.Fprintf(w, "\nlab %s: %s\n", l.Name, remedy)
					}
				}
			})
		},
	}
	labOutputFlag(cmd, &output)
	return cmd
}

// labRemedy says what is to be done about a lab that is not up; empty if it is.
func labRemedy(l lab.Status) string {
	again := "weft lab down " + l.Name + ", then bring it up again"
	switch {
	case l.State == "half made":
		return "wait for weft lab up; if that has ended, weft lab down " + l.Name
	case l.State == "broken: keeper does not run":
		return "its keeper is what watches programs, shapes some links and relays the switches to the controller; hosts and switches are still there: " + again
	case strings.HasSuffix(l.State, " does not run"):
		return again
	}
	return ""
}

func labKeeperCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "keeper NAME",
		Short:  "Run a lab's keeper; `weft lab up` starts it",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := cli.Signals(cmd)
			defer stop()
			return keeper.Run(ctx, args[0])
		},
	}
}

func labNameFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "name", "", "the lab (default: the only one that is up)")
}
