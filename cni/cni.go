// Package cni is a CNI plug-in: it gives a container, such as a 5G function in a pod, an
// interface at a switch of its own, which the controller has (papers, SCP Fig. 3d). The
// switch is an Open vSwitch of the node, with two ports: 1 the container, 2 the switch of the
// node. Switches of nodes are joined over VXLAN.
//
// Addresses come from an IPAM plug-in, or from the runtime by the capability ips. The
// plug-in keeps nothing: what belongs to a container is found by its identifier.
// (CNI specification 1.1.0.)
package cni

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
)

// Funcs are the operations of the plug-in, for skel.PluginMainFuncs.
func Funcs() skel.CNIFuncs {
	return skel.CNIFuncs{Add: add, Del: del, Check: check, GC: collect, Status: status}
}

// Versions are the versions of the specification that the plug-in speaks.
var Versions = version.All

// Usage says what the plug-in is, for those who start it by hand.
const Usage = `weft-cni is a CNI plug-in, which gives each container a switch of its own under the controller Weft; a container runtime starts it.
By hand: echo '{"cniVersion": "1.1.0", "name": "core5g", "type": "weft-cni", "controllers": ["tcp:10.0.0.1:6653"]}' | CNI_COMMAND=STATUS CNI_PATH=/opt/cni/bin weft-cni`

// unavailable is the code of a plug-in that cannot serve ADD now.
const unavailable = 50

func add(args *skel.CmdArgs) (err error) {
	c, err := parseNew(args.StdinData)
	if err != nil {
		return err
	}
	if args.Netns == "" {
		return types.NewError(types.ErrInvalidEnvironmentVariables, "CNI_NETNS: missing", "")
	}
	ctx := context.Background()
	a := attach(c.Name, args.ContainerID, args.IfName)
	r, err := c.address(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = c.remove(ctx, a) // whatever of it is there; the first error counts
		}
	}()
	mac, err := c.addInterface(args.Netns, a, r)
	if err != nil {
		return err
	}
	if err := c.connect(ctx, a, podName(args.Args, args.ContainerID)); err != nil {
		return err
	}
	r.CNIVersion = types100.ImplementedSpecVersion
	r.Interfaces = []*types100.Interface{{Name: a.bridge}, {Name: a.host}, {Name: a.iface, Mac: mac, Mtu: c.MTU, Sandbox: args.Netns}}
	for _, ip := range r.IPs {
		ip.Interface = types100.Int(2)
	}
	r.DNS = c.DNS
	return types.PrintResult(r, c.CNIVersion)
}

// address returns the addresses and routes of a new container.
func (c *Config) address(ctx context.Context) (*types100.Result, error) {
	if c.IPAM.Type != "" {
		res, err := invoke.DelegateAdd(ctx, c.IPAM.Type, c.stdin, nil)
		if err != nil {
			return nil, err
		}
		r, err := types100.NewResultFromResult(res)
		if err == nil && len(r.IPs) == 0 {
			err = fmt.Errorf("the IPAM plug-in %s gives no address", c.IPAM.Type)
		}
		return r, err
	}
	if len(c.addresses) == 0 {
		return nil, types.NewError(types.ErrInvalidNetworkConfig, "no address for the container",
			`give the network an ipam, such as {"type": "host-local", "subnet": "10.0.0.0/24"}, or the capability ips`)
	}
	r := &types100.Result{}
	for _, a := range c.addresses {
		r.IPs = append(r.IPs, &types100.IPConfig{Address: net.IPNet{IP: a.Addr().AsSlice(), Mask: net.CIDRMask(a.Bits(), a.Addr().BitLen())}})
	}
	return r, nil
}

func del(args *skel.CmdArgs) error {
	c, err := parse(args.StdinData)
	if err != nil {
		return err
	}
	return c.remove(context.Background(), attach(c.Name, args.ContainerID, args.IfName))
}

// remove takes back what add has done, also if only half of it was.
func (c *Config) remove(ctx context.Context, a attachment) error {
	err := c.disconnect(ctx, a)
	if e := deleteInterface(a); err == nil {
		err = e
	}
	if c.IPAM.Type == "" {
		return err
	}
	if e := invoke.DelegateDel(ctx, c.IPAM.Type, c.stdin, nil); err == nil {
		err = e
	}
	return err
}

func check(args *skel.CmdArgs) error {
	c, err := parse(args.StdinData)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if c.IPAM.Type != "" {
		if err := invoke.DelegateCheck(ctx, c.IPAM.Type, c.stdin, nil); err != nil {
			return err
		}
	}
	if err := version.ParsePrevResult(&c.PluginConf); err != nil {
		return err
	}
	if c.PrevResult == nil {
		return types.NewError(types.ErrInvalidNetworkConfig, "prevResult: missing", "")
	}
	r, err := types100.NewResultFromResult(c.PrevResult)
	if err != nil {
		return err
	}
	a := attach(c.Name, args.ContainerID, args.IfName)
	if err := checkInterface(args.Netns, a, r); err != nil {
		return err
	}
	for _, port := range [][2]string{{a.host, a.bridge}, {a.up, a.bridge}, {a.down, c.Bridge}} {
		out, err := c.vsctl(ctx, "port-to-br", port[0])
		if err != nil {
			return err
		}
		if out != port[1]+"\n" {
			return fmt.Errorf("port %s is not at switch %s", port[0], port[1])
		}
	}
	return nil
}

func status(args *skel.CmdArgs) error {
	c, err := parseNew(args.StdinData)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := c.vsctl(ctx, "get", "Open_vSwitch", ".", "ovs_version"); err != nil {
		return types.NewError(unavailable, "Open vSwitch of this node does not answer", err.Error())
	}
	if c.IPAM.Type != "" {
		return invoke.DelegateStatus(ctx, c.IPAM.Type, c.stdin, nil)
	}
	return nil
}

// collect removes what belongs to containers that are gone.
func collect(args *skel.CmdArgs) error {
	c, err := parse(args.StdinData)
	if err != nil {
		return err
	}
	ctx := context.Background()
	list, err := c.attachments(ctx)
	if err != nil {
		return err
	}
	for _, a := range list {
		if slices.Contains(c.ValidAttachments, types.GCAttachment{ContainerID: a.container, IfName: a.iface}) {
			continue
		}
		if e := c.disconnect(ctx, a); err == nil {
			err = e
		}
		if e := deleteInterface(a); err == nil {
			err = e
		}
	}
	if c.IPAM.Type != "" {
		if e := invoke.DelegateGC(ctx, c.IPAM.Type, c.stdin, nil); err == nil {
			err = e
		}
	}
	return err
}
