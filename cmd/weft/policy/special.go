package policy

import (
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// What the .proto files cannot say of commands and objects is found here, by name.

// special is what is special in the command of one method.
type special struct {
	flags func(cmd *cobra.Command) // adds flags that are no fields
	// check completes and judges a request.
	check func(cmd *cobra.Command, args []string, request proto.Message) error
	// text writes the answer.
	text func(t *cli.Table, request, answer proto.Message)
	// after judges the answer: failed is shown beside it, err instead.
	after func(c *cli.Controller, request, answer proto.Message) (failed, err error)
}

// specialOf returns what is special in the command of a method.
func specialOf(method protoreflect.FullName) special {
	switch method {
	case "weft.v1.Balancer.DeleteMember":
		return special{after: failUnchanged}
	case "weft.v1.Balancer.ListConnections":
		return special{after: failUnknownVip}
	case "weft.v1.Balancer.ListPairs":
		return special{after: failUnknownVip, text: writePairs}
	case "weft.v1.Chain.PingChain":
		return special{flags: addPingInterval, check: checkChainPing, text: writeChainPing, after: failChainPing}
	case "weft.v1.Chain.TraceChain":
		return special{text: writeChainTrace, after: failChainTrace}
	case "weft.v1.Firewall.ListFirewallRules":
		return special{after: failMissingRules, text: writeRules}
	case "weft.v1.Firewall.SetFirewallDefault":
		return special{flags: completeActions, check: checkDefault, text: writeDefault, after: failDefault}
	case "weft.v1.Hosts.ApproveHost":
		return special{text: writeApproved}
	case "weft.v1.Hosts.RevokeHost":
		return special{text: writeRevoked, after: failRevoked}
	case "weft.v1.Hosts.UnbindHost":
		return special{check: checkUnbind, text: writeUnbound, after: failUnbound}
	case "weft.v1.L2vpn.ListCircuitMacs":
		return special{text: writeMacs}
	case "weft.v1.L2vpn.PingCircuit":
		return special{flags: addPingInterval, check: checkPing, text: writePing, after: failPing}
	case "weft.v1.L2vpn.PreviewCircuit":
		return special{check: checkPreview}
	case "weft.v1.L2vpn.ValidateCircuits":
		return special{text: writeFaults, after: failFaults}
	case "weft.v1.Qos.SetPolicy":
		return special{check: checkPolicy}
	case "weft.v1.Qos.GetStatus":
		return special{text: writeQosStatus}
	case "weft.v1.Qos.SetQueues":
		return special{after: failQueues}
	case "weft.v1.Scp.GetScp":
		return special{text: writeScp}
	case "weft.v1.Tenants.SetNetwork":
		return special{flags: addMemberHosts, check: setMemberHosts}
	case "weft.v1.Tenants.GetTenantsStatus":
		return special{text: writeTenantsStatus}
	case "weft.v1.Tunnels.SetTunnel":
		return special{flags: addRevertFlags, check: checkTunnel}
	case "weft.v1.Tunnels.OptimiseTunnels":
		return special{text: writeOptimised, after: failOptimised}
	}
	return special{}
}

// specialCommands returns the commands of a service that are no single method.
func specialCommands(service protoreflect.Name, r *cli.Remote) []*cobra.Command {
	switch service {
	case "Firewall":
		return []*cobra.Command{firewallAddCommand(r), firewallDeleteCommand(r)}
	case "Flowrules":
		return []*cobra.Command{flowAddCommand(r), flowDeleteCommand(r)}
	case "Hosts":
		return []*cobra.Command{hostPortCommand(r), hostHoldCommand(r)}
	case "L2vpn":
		return []*cobra.Command{l2vpnAddCommand(r), l2vpnSetCommand(r), l2vpnLoopCommand(r), l2vpnApplyCommand(r)}
	case "Scp":
		return []*cobra.Command{scpTopoCommand(r)}
	case "Tunnels":
		return []*cobra.Command{tunnelPreviewCommand(r)}
	}
	return nil
}

// object is what is special in the objects of one kind.
type object struct {
	set    func(c *cli.Controller, m proto.Message) (proto.Message, error)
	remove func(c *cli.Controller, m proto.Message) error
	// setAll and removeAll set and remove many objects in one call; nil: one by one.
	setAll, removeAll func(c *cli.Controller, list []proto.Message) error
	fresh             func(m proto.Message)      // sets defaults
	foreign           func(m proto.Message) bool // it is shown, and not changed here
	tidy              func(m proto.Message)      // brings it into the form in which it is compared
}

// objectOf returns what is special in the objects of a type.
func objectOf(message protoreflect.Name) object {
	switch message {
	case "Circuit":
		return object{set: setCircuit}
	case "FirewallRule":
		return object{setAll: setRules, removeAll: deleteRules, fresh: freshRule, foreign: isConfigured}
	case "NatGateway":
		return object{tidy: tidyGateway}
	case "TenantNetwork":
		return object{tidy: tidyNetwork}
	case "Tunnel":
		return object{foreign: isUsed}
	case "Vip":
		return object{tidy: tidyVip, foreign: isOwned}
	case "VirtualRouter":
		return object{set: setRouter, remove: deleteRouter, tidy: tidyRouter}
	}
	return object{}
}

// ownText writes what templates call {@name}.
func ownText(name string, m proto.Message) string {
	switch name {
	case "action":
		return actionText(m)
	case "fields":
		return fieldsText(m.(interface{ GetMatch() map[string]string }).GetMatch())
	case "functions":
		return functionsText(m)
	case "match":
		return ruleMatch(m)
	case "members":
		return membersText(m)
	case "packets":
		return packetsText(m)
	case "routes":
		return routesText(m)
	case "rule":
		return decisionText(m)
	case "state":
		return ruleState(m)
	}
	panic("no text " + name)
}

// readForm sets a field to what texts say in a form. Errors name the flag, if it is one.
func readForm(form, flag string, to protoreflect.Message, f protoreflect.FieldDescriptor, texts []string) error {
	switch form {
	case "dpid":
		return readSwitch(to, f, texts)
	case "match", "protocols":
		return readMatch(form, flag, to, f, texts)
	case "fields":
		return readFields(flag, to, f, texts)
	case "elements":
		return readElements(flag, to, texts)
	case "switches":
		return readSwitches(flag, to, f, texts)
	case "clients":
		return readClients(to, f, texts)
	case "forward":
		return readEach(flag, to, f, texts, readForward)
	case "member":
		return readMembers(flag, to, f, texts)
	case "places", "holds":
		return readPlace(form, flag, to, f, texts)
	case "port":
		return readEach(flag, to, f, texts, readMember)
	case "ports":
		return readPorts(flag, to, texts[0])
	case "queue":
		return readEach(flag, to, f, texts, readQueue)
	case "via":
		return readEach(flag, to, f, texts, readFunction)
	case "from", "until":
		return readTime(flag, to, f, texts[0])
	case "":
		return setTexts(to, f, texts)
	}
	panic("no form " + form)
}
