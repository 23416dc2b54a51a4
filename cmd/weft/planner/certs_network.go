package planner

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/deploy/certs"
	"github.com/weft-sdn/weft/flow"
)

func certsController() *cobra.Command {
	var f certsFlags
	var hosts []string
	days := 365
	cmd := &cobra.Command{
		Use:   "controller [NAME]",
		Short: "Issue the controller's certificate, for switches and clients",
		Long: `Issue the certificate that the controller shows switches (southbound) and clients
(northbound), for the names and addresses by which clients reach it. An authority
is made if there is none. What is printed below the table goes into the
controller's configuration.`,
		Example: `  weft certs controller --dir certs
  weft certs controller --dir certs --host 192.0.2.1 --host sdn.example.org`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if days < 1 {
				return cli.Usagef(cmd, "days %d; allowed: 1 and more", days)
			}
			name := string(certs.Controller)
			if len(args) > 0 {
				name = args[0]
			}
			r := certs.Request{Name: name, Kind: certs.Controller, Validity: time.Duration(days) * 24 * time.Hour, Force: certs.Force(f.force)}
			if len(hosts) > 0 {
				r.Hosts = append(certs.DefaultHosts(), hosts...)
			}
			made, err := certs.Ensure(f.dir)
			if err == nil {
				err = certs.Issue(f.dir, r)
			}
			if err != nil {
				return err
			}
			names, actions := []string{name}, map[string]string{name: "issued"}
			if made {
				names, actions["ca"] = []string{"ca", name}, "made"
			}
			if err := f.print(cmd, names, actions); err != nil || f.out.Format != "table" {
				return err
			}
			dir, err := filepath.Abs(f.dir)
			if err != nil {
				return err
			}
			cert := certs.File(dir, name)
			key := strings.TrimSuffix(cert, ".crt") + ".key"
			_, err = fmt.Fprintf(cmd.OutOrStdout(), `
southbound:
  listen: ["tls:0.0.0.0:6653"]
  certificate: %[1]s
  key: %[2]s
  authority: %[3]s
gateway:
  certificate: %[1]s
  key: %[2]s
`, cert, key, certs.File(dir, "ca"))
			return err
		},
	}
	f.flags(cmd)
	cmd.Flags().StringArrayVar(&hosts, "host", nil, "a name or address by which clients reach it, besides this machine's own; may be given several times")
	cmd.Flags().IntVar(&days, "days", days, "validity in days")
	return cmd
}

func certsSwitch() *cobra.Command {
	var f certsFlags
	var together, controller, bridge string
	days := 365
	cmd := &cobra.Command{
		Use:   "switch DPID...",
		Short: "Issue certificates for switches",
		Long: `Issue a certificate for each switch, by its datapath id in hexadecimal digits. It
says weft://switch/DPID; the southbound takes the switch at its word that it has
this id, and no other. An Open vSwitch has one certificate for all of its bridges:
with --together one certificate is made for all ids that are given.

What is printed below the table is for the switch's machine. It needs ca.crt and the
two files of the switch, and nothing else of this directory.`,
		Example: `  weft certs switch 1 2 3 --dir certs
  weft certs switch 00000000000000a1 00000000000000a2 --together edge7 --controller ssl:192.0.2.1:6653`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if days < 1 {
				return cli.Usagef(cmd, "days %d; allowed: 1 and more", days)
			}
			var requests []certs.Request
			for _, arg := range args {
				sw, err := flow.ParseDPID(arg)
				if err != nil {
					return cli.Usagef(cmd, "%v", err)
				}
				if together != "" && len(requests) > 0 {
					requests[0].Switches = append(requests[0].Switches, sw)
					continue
				}
				name := together
				if name == "" {
					name = "switch-" + sw.String()
				}
				requests = append(requests, certs.Request{
					Name: name, Kind: certs.Switch, Switches: []flow.DPID{sw}, Validity: time.Duration(days) * 24 * time.Hour, Force: certs.Force(f.force),
				})
			}
			if err := certs.Issue(f.dir, requests...); err != nil {
				return err
			}
			var names []string
			actions := map[string]string{}
			for _, r := range requests {
				names = append(names, r.Name)
				actions[r.Name] = "issued"
			}
			if err := f.print(cmd, names, actions); err != nil || f.out.Format != "table" {
				return err
			}
			w := cmd.OutOrStdout()
			for _, r := range requests {
				fmt.Fprintf(w, "\nscp %s %s %s SWITCH:/etc/openvswitch/\n", certs.File(f.dir, "ca"), certs.File(f.dir, r.Name),
					strings.TrimSuffix(certs.File(f.dir, r.Name), ".crt")+".key")
				fmt.Fprintf(w, "ovs-vsctl set-ssl /etc/openvswitch/%[1]s.key /etc/openvswitch/%[1]s.crt /etc/openvswitch/ca.crt\n", r.Name)
				for _, sw := range r.Switches {
					fmt.Fprintf(w, "ovs-vsctl set bridge %s other-config:datapath-id=%v -- set-controller %[1]s %[3]s\n", bridge, sw, controller)
				}
			}
			return nil
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&together, "together", "", "make one certificate of this name for all switches, which are bridges of one Open vSwitch")
	cmd.Flags().StringVar(&controller, "controller", "ssl:CONTROLLER:6653", "the controller's address, for what is printed")
	cmd.Flags().StringVar(&bridge, "bridge", "BRIDGE", "the bridge's name, for what is printed")
	cmd.Flags().IntVar(&days, "days", days, "validity in days")
	return cmd
}

func certsRenew() *cobra.Command {
	var f certsFlags
	days := 30
	cmd := &cobra.Command{
		Use:   "renew [NAME...]",
		Short: "Renew certificates that end soon",
		Long: `Issue certificates again that end within --days, with what they say and for as
long as before: those of the names, or all that have their keys in the directory.
Processes that use the files take the new ones within a second; connections that
exist go on.`,
		Example: `  weft certs renew --dir certs
  weft certs renew controller --dir certs --days 400`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if days < 0 {
				return cli.Usagef(cmd, "days %d; allowed: 0 and more", days)
			}
			done, err := certs.Renew(f.dir, time.Duration(days)*24*time.Hour, names...)
			if err != nil {
				return err
			}
			actions := map[string]string{}
			names = names[:0:0]
			for _, r := range done {
				names = append(names, r.Name)
				actions[r.Name] = "kept"
				if r.Renewed {
					actions[r.Name] = "renewed"
				}
			}
			return f.print(cmd, names, actions)
		},
	}
	cmd.Flags().StringVar(&f.dir, "dir", "certs", "directory of the authority and what it issues")
	cmd.MarkFlagDirname("dir")
	cmd.Flags().IntVar(&days, "days", days, "renew what ends within this many days")
	f.out.Flag(cmd)
	return cmd
}
