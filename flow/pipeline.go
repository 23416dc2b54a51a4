package flow

// This file declares who writes what into the switches: the tables, the owners
// of entries with their priorities, groups and meters, and the places of both in
// the pipeline. All else derives it (owner.go).

// The tables that a packet passes in a switch, from lower to higher numbers, with
// gaps for what comes. Switches with OpenFlow 1.0 or with fewer tables have all
// their entries in table 0: there policies are enforced by the controller alone.
const (
	TableIngress    uint8 = 0
	TableCircuits   uint8 = 2
	TableLabels     uint8 = 4
	TableFirewall   uint8 = 10
	TableQoS        uint8 = 20
	TableTranslate  uint8 = 30
	TableProxy      uint8 = 34
	TableTracked    uint8 = 40
	TableNeighbours uint8 = 45
	TableForward    uint8 = 50
	TableChains     uint8 = 54
	TableDeliver    uint8 = 56

	PipelineTables = uint32(TableForward) + 1 // that a switch must have for entries elsewhere than in table 0
)

var tables = []Table{
	{Number: TableIngress, Name: "ingress", Way: true, Doc: "probes, operator's entries, tags of virtual networks"},
	{Number: TableCircuits, Name: "circuits", Doc: "circuits: second tags, and the tags with which frames leave"},
	{Number: TableLabels, Name: "labels", Doc: "labelled frames from links: tunnels, circuits"},
	{Number: 6, Name: "mirrors", Doc: "reserved: copies of packets"},
	{Number: TableFirewall, Was: 1, Name: "firewall", Way: true, Closed: true, Doc: "verdicts"},
	{Number: TableQoS, Was: 2, Name: "qos", Way: true, Closed: true, Doc: "marks, meters, queues"},
	{Number: TableTranslate, Was: 3, Name: "translate", Way: true, Doc: "addresses: balancer, router, nat"},
	{Number: TableProxy, Name: "proxy", Closed: true, Doc: "what is for hosts in whose place the controller answers, while it is there"},
	{Number: TableTracked, Was: 5, Name: "tracked", Doc: "packets that nat has sent through connection tracking"},
	{Number: TableNeighbours, Name: "neighbours", Way: true, Closed: true, Doc: "unicast ARP and ND: what a known host says of itself, and what comes by a link, goes on; all else to the controller; copies of what hosts say to groups about where they are"},
	{Number: TableForward, Was: 4, Name: "forward", Way: true, Doc: "other ARP and ND, RARP, DHCP, miss: to the controller; multicast; routes"},
	{Number: TableChains, Name: "chains", Closed: true, Doc: "packets of chains: to their next function"},
	{Number: TableDeliver, Name: "deliver", Closed: true, Doc: "packets of chains behind the last function: to their host"},
	{Number: 100, Last: 199, Name: "slices", Doc: "reserved: slices of other controllers"},
}

// The owners, as cookies have them.
const (
	OwnerForeign    Owner = 0 // not written by Weft
	OwnerDiscovery  Owner = 1
	OwnerHosts      Owner = 2
	OwnerForwarding Owner = 3
	OwnerRoutes     Owner = 4
	OwnerOperator   Owner = 5
	OwnerFirewall   Owner = 6
	OwnerBalancer   Owner = 7
	OwnerNAT        Owner = 8
	OwnerQoS        Owner = 9
	OwnerTenants    Owner = 10
	OwnerGuard      Owner = 11
	OwnerVerdicts   Owner = 12
	OwnerRouter     Owner = 13
	OwnerBindings   Owner = 14
	OwnerCircuits   Owner = 15
	OwnerLabels     Owner = 16
	OwnerSCP        Owner = 18
	OwnerChains     Owner = 19
	OwnerSteers     Owner = 23
	OwnerNeighbours Owner = 21
)

// The priorities of entries: a service has those of its rows below, and no
// others. Those of TableForward are in table 0 on a switch that has all there.
const (
	// In TableIngress. No operator's entry may stand beside or before the probes',
	// or links could be hidden or feigned (CVE-2024-37018).
	PriorityProbe = 65535

	// On switches with one table: above forwarding's traps and routes.
	PrioritySingleDrop  = 60000 // what is denied for certain
	PrioritySingleJudge = 59000 // what may be denied: to the controller
	PrioritySingleProxy = 58000 // what is for an NRF, or a front that has no host: to the controller

	// Below the operator's usual one, above virtual networks.
	PriorityCircuitRing     = 31500 // ring probes of circuits: to the controller
	PriorityCircuitLabelled = 31000 // labelled frames at an end: dropped, for Open vSwitch 3.1 aborts where it encapsulates one
	PriorityCircuitOAM      = 30620 // of a maintenance end point: to the controller
	PriorityCircuitControl  = 30610 // of layer-2 control protocols, where a circuit says what becomes of them; above, those named by address, then by protocol
	PriorityCircuitCast     = 30600 // of a vpws: broadcast and multicast, by a meter of their own
	PriorityCircuitYellow   = 30510 // that customers mark as discardable, by a meter of their own
	PriorityCircuit         = 30500 // frames at an end: to their tunnel
	PriorityCircuitRest     = 30400 // of an end that is a port where others have VLANs; above, in this order, discardable frames, broadcast and multicast of a vpws, control protocols, and those of maintenance end points
	PriorityForeignProbe    = 30300 // LLDP that is not our own and not a circuit's

	// Of chains, below circuits and above virtual networks.
	PriorityChainBack   = 29900 // what functions of chains send: IP packets to TableForward, probes to the controller
	PriorityChainPort   = 29890 // what else they send: dropped
	PriorityChainTag    = 29880 // tagged packets of chains, from links
	PriorityChainForged = 29870 // such tags from elsewhere: dropped

	// Below the operator's usual one, above the bindings.
	PriorityTenantDouble = 29000 // a second tag behind that of a member: dropped
	PriorityTenantMember = 28000 // frames of a member: given the tag of their network
	PriorityTenantPort   = 27000 // what else comes in by a member's port: dropped
	PriorityTenantLink   = 26000 // what comes in by a link: passed on as it is
	PriorityTenantHost   = 25000 // frames of a host that is a member by its address
	PriorityTenantOther  = 24000 // that host's tagged frames: dropped
	PriorityTenantGuard  = 23000 // frames that bring a network's tag with them: dropped

	// Above the entries by which a hybrid node hands packets to its own routing.
	PriorityLabelled = 22000 // labelled frames from a link: to TableLabels

	// Of hybrid nodes themselves, not of the controller (package node): below what
	// services have for a port.
	PriorityCoexistGuard = 210 // from customers: what is of the nodes' routing, dropped
	PriorityCoexist      = 200 // what comes by a port, to the node's routing, and back

	// Between these two, so that nothing that is guarded is steered.
	PrioritySteerNot = 202 // neighbour discovery, and what is for the link itself: to the node's routing
	PrioritySteer    = 201 // what customers send and is steered: into a tunnel

	PriorityBindingTrusted   = 6 // ports that are not edge ports; neighbour discovery, which the controller judges
	PriorityBindingSource    = 5 // a bound IP address of its host
	PriorityBindingNotOwn    = 4 // of anybody else: dropped
	PriorityBindingPort      = 3 // a bound Ethernet address at its port
	PriorityBindingElsewhere = 2 // at any other: dropped

	PriorityCircuitInner  = 1000 // in TableCircuits; above it as above PriorityCircuitRest, then labelled frames
	PriorityCircuitTagged = 1060 // in TableCircuits: frames of an end by how many tags of the customer's they have
	PriorityCircuitTags   = 900  // frames of a circuit on their way out; above, those whose code points change
	PriorityCircuitOther  = 1070 // in TableCircuits: those of a VLAN that another end of the port has, dropped
	PriorityLANBack       = 1050 // of a vpls: frames on their way out by the port that they came in by; above, those whose code points change
	PriorityLANOut        = 1040 // by another; above, as well
	PriorityLANForged     = 1030 // of a vpls, and of payload ip: frames whose sender is a group
	PriorityLANSender     = 1020 // whose sender is known
	PriorityLANUnknown    = 1010 // others: to the controller, too

	PriorityCircuitProbe = 1100 // in TableLabels: probes of a circuit
	PriorityLabel        = 1000 // of tunnels
	PriorityCircuitLabel = 900  // of circuits
	PrioritySteered      = 890  // steered packets at the end of their tunnel: to the node's routing
	PriorityLANSelf      = 830  // of a vpls: to an address at the end that they came from, dropped
	PriorityLANKnown     = 820  // to an address that is known; of payload ip: IPv4, ARP and IPv6
	PriorityLANFlood     = 810  // others: to all; of payload ip: dropped

	PriorityFirewallLinks   = 65535 // in TableFirewall
	PriorityHidden          = 65534 // what hides from the tables what it is, from hosts' ports: dropped
	PriorityFirewallBlock   = 65533
	PriorityFirewallMade    = 65000 // of the first rule, where priorities have to be made up
	PriorityFirewallVerdict = 100
	PriorityFirewallRest    = 1

	PriorityQoS = 60000 // in TableQoS: of the entry that counts first; the others follow below

	PriorityCounted = 2 // in TableTranslate: connections to producers' own addresses, counted: on
	PriorityDoors   = 1 // in TableTranslate: other TCP of a core, to TableProxy, for a few seconds

	PriorityNATNeighbour = 30060 // in TableTranslate: IPv6's ARP, to the gateway
	PriorityNATForward   = 30050 // in, by a rule
	PriorityNATIn        = 30040 // in, answers
	PriorityNATStray     = 30030 // everything else from outside to the gateway or inside
	PriorityNATSelf      = 30021 // to the gateway's own address
	PriorityNATOwn       = 30020 // to the gateway itself, or not to be translated
	PriorityNATOut       = 30010 // out, TCP and UDP
	PriorityNATOutICMP   = 30009 // out, what has no ports
	PriorityNATGroup     = 30006 // to groups' addresses, in frames to groups: as without a gateway
	PriorityNATLeak      = 30005 // from inside past the gateway, to the outside: dropped

	PriorityConnection    = 30000 // of one connection
	PriorityPair          = 29990 // of all connections of a client with a member
	PriorityProxy         = 20010 // what is for an NRF, or a front that has no host: to the controller
	PriorityShadowMember  = 20003 // what members send to the host that their VIP shadows, and answers to checks
	PriorityShadow        = 20002 // what others send to that host: to the controller
	PriorityBalancerProbe = 20001 // answers to checks of members that a group serves
	PriorityBalancerGroup = 20000 // of a VIP whose members a group chooses, and their answers

	PriorityShadowRest = 2 // in TableProxy: what else is for the host that a VIP shadows: on; the balancer's
	PriorityProxyRest  = 1 // the same of the NRF, of a front that has no host; scp's

	PriorityDoorPast = 5 // in TableProxy: what comes by links, or from the NRF and scp's front: on
	PriorityDoor     = 4 // what else is for a producer's own address and port: to the controller
	PriorityDoorRest = 3 // other TCP: on

	// Twice the length of the destination's prefix is added, and one more where
	// packets go back to the port that they came in by. It is lower than the
	// balancer's and nat's: what is for one of their addresses is theirs.
	PriorityRouted      = 10000
	PriorityNotRouted   = 10258 // to a router, from or to addresses that are not routed: dropped
	PriorityRouterOwned = 10260 // to a router's own address: to the controller

	PriorityNeighbourLink = 44000 // in TableNeighbours: what comes by a link, which was judged where it came in: on
	PriorityNeighbourOwn  = 43000 // unicast ARP and ND to or about an address of the controller's own, to the controller; forwarding's
	PriorityNeighbourVIP  = 43001 // the balancer's
	PriorityNeighbourVia  = 43002 // the router's
	PriorityNeighbourNAT  = 43003
	PriorityNeighbourNRF  = 43004 // of scp's front
	PriorityNeighbourAsk  = 42001 // answers to questions of hosts, to the controller
	PriorityNeighbour     = 42000 // what a known host says of itself: on

	PriorityLinkLocal        = 45010                        // in TableForward: frames to 01-80-C2-00-00-00 to 0F, which no bridge passes on: dropped
	PriorityLinkFlood        = 45000                        // multicast from the link ports; one above, of a virtual network or a VLAN that circuits have
	PriorityLimitedTrap      = 40001                        // as PriorityTrap, of a port that floods
	PriorityTrap             = 40000                        // ARP, RARP, neighbour and router solicitations, advertisements of neighbours and DHCP, to the controller; unicast ones of neighbours in TableNeighbours
	PriorityFlood            = 30000                        // multicast from the edge ports; one above, of a virtual network or a VLAN that circuits have
	PriorityChainReturned    = 50000                        // what functions of chains send and is of none: dropped; above all else
	PriorityChainReturnedTop = PriorityChainReturned + 1999 // and twice that of the chain: to the next function
	PriorityChainGuard       = 35000                        // what would get past a chain that blocks, in frames to groups: dropped; above the multicasts
	PriorityOther            = 20000                        // multicast from all ports that have no entry, where they are many
	PriorityListen           = 15000                        // packets of a host whose place somebody claims; above the routes, so that all are heard
	PriorityChain            = 12000                        // and twice that of the chain, to PriorityChainTop: packets from edge ports, to the first function
	PriorityChainTop         = 13999
	PriorityRoute            = 10000
	PriorityNRFAsk           = 45005 // ARP and neighbour solicitations between an NRF and its consumers: on; above what comes by links
	PriorityNRFWay           = 9000  // packets between them, that no route takes
	PriorityLimitedMiss      = 1     // as PriorityMiss, of a port that floods
	PriorityMiss             = 0

	PriorityTrackedInvalid   = 30 // in TableTracked
	PriorityTrackedExhausted = 20 // no address and port were free
	PriorityTrackedOut       = 10

	// PriorityOperator is that of the operator's entries and rules that do not say
	// theirs, as in ovs-ofctl.
	PriorityOperator = 32768
)

// The first numbers of groups and meters, which all share on a switch.
const (
	FloodGroups    uint32 = 0xa0000000
	BalancerGroups uint32 = 0xb0000000
	CircuitGroups  uint32 = 0xc0000000 // of ends of payload ip, by their labels
	TunnelGroups   uint32 = 0xc1000000 // of tunnels' heads
	BypassGroups   uint32 = 0xc1800000 // of links with a bypass: the number of the port is added
	LiveGroup      uint32 = 0xc1ffffff // is always live: what watches it is the last resort
	AppGroups      uint32 = 0xd0000000 // for each app, by the lower 12 bits of its mark, 1<<16
	RouteGroupMax  uint32 = 0x7fffffff // the last of routes, which begin at 1

	QoSMeterMax  uint32 = 0xffff // the last of qos, which begin at 1
	GuardMeters  uint32 = 0x10000
	TenantMeters uint32 = 0x20000

	CircuitMeters uint32 = 0x30000
)

// writers are the owners, in the order in which their services see a packet.
var writers = []Writer{
	{Owner: OwnerDiscovery, Name: "discovery", Service: "discovery", Stage: true, Standing: true, Observed: true, Hybrid: true,
		Priorities: []Priorities{
			{Table: TableIngress, Base: PriorityProbe, Top: PriorityProbe, Doc: "our own LLDP to the controller; BDDP dropped"},
			{Table: TableIngress, Base: PriorityForeignProbe, Top: PriorityForeignProbe, Doc: "other LLDP than our own, to the controller"},
		}},
	{Owner: OwnerOperator, Name: "operator", Service: "flowrules", Observed: true, Hybrid: true}, // any table and priority that no other has
	{Name: "apps", Groups: Range{AppGroups, AppGroups + 1<<28 - 1}},                              // as the operator's, by cookies of their own
	{Owner: OwnerTenants, Name: "tenants", Service: "tenants", Standing: true, Observed: true, Policy: true,
		Priorities: []Priorities{
			{Table: TableIngress, Base: PriorityTenantGuard, Top: PriorityTenantDouble, Doc: "tags of virtual networks put on; foreign tags dropped"},
		},
		Meters: Range{TenantMeters, TenantMeters + 1<<16 - 1}},
	{Name: "node", // by cookies of their own
		Priorities: []Priorities{
			{Table: TableIngress, Base: PriorityCoexist, Top: PriorityCoexist, Doc: "hybrid nodes: between a port and the node's IP routing"},
			{Table: TableIngress, Base: PriorityCoexistGuard, Top: PriorityCoexistGuard, Doc: "of customers, the routing's protocols dropped"},
		}},
	{Owner: OwnerLabels, Name: "labels", Service: "tunnels", Standing: true, Observed: true, Hybrid: true,
		Priorities: []Priorities{
			{Table: TableIngress, Base: PriorityLabelled, Top: PriorityLabelled, Doc: "labelled frames from a link: to their own table"},
			{Table: TableLabels, Base: PriorityLabel, Top: PriorityLabel, Doc: "tunnels: the next label, or none before the tail"},
		},
		Groups: Range{TunnelGroups, TunnelGroups + 1<<24 - 1}},
	{Owner: OwnerSteers, Name: "steers", Service: "tunnels", Standing: true, Observed: true, Policy: true, Hybrid: true,
		Priorities: []Priorities{
			{Table: TableIngress, Base: PrioritySteer, Top: PrioritySteerNot, Doc: "steers: IP packets of customers, into a tunnel; above, neighbour discovery and link-local addresses, to the node's routing"},
			{Table: TableLabels, Base: PrioritySteered, Top: PrioritySteered, Doc: "steers: at the tail, the label taken off, and to the node's routing"},
		}},
	{Owner: OwnerCircuits, Name: "circuits", Service: "l2vpn", Stage: true, Standing: true, Observed: true, Hybrid: true,
		Priorities: []Priorities{
			{Table: TableIngress, Base: PriorityCircuitRing, Top: PriorityCircuitRing, Doc: "circuits: probes that a customer has passed on from one end to another, to the controller"},
			{Table: TableIngress, Base: PriorityCircuitLabelled, Top: PriorityCircuitLabelled, Doc: "circuits: labelled frames from customers, dropped"},
			{Table: TableIngress, Base: PriorityCircuitRest, Top: PriorityCircuitOAM, Doc: "circuits: frames of an end, to the tunnel; discardable ones, and broadcast and multicast of a vpws, through meters; above, control protocols, and frames of maintenance end points, to the controller; below, those of a port where other ends have VLANs"},
			{Table: TableCircuits, Base: PriorityCircuitInner, Top: PriorityCircuitInner + 7, Doc: "circuits: frames of an end with two tags, to the tunnel; above, as in table 0, and labelled ones, dropped"},
			{Table: TableCircuits, Base: PriorityCircuitTagged, Top: PriorityCircuitTagged + 1, Doc: "circuits: frames of an end by how many tags of the customer's own they have; too many, dropped"},
			{Table: TableCircuits, Base: PriorityCircuitOther, Top: PriorityCircuitOther, Doc: "circuits: frames on their way out at a port, of a VLAN that another end has there: dropped"},
			{Table: TableCircuits, Base: PriorityCircuitTags, Top: PriorityCircuitTags + 2, Doc: "circuits: the tags of an end put on, code points changed, and out"},
			{Table: TableCircuits, Base: PriorityLANUnknown, Top: PriorityLANBack + 2, Doc: "vpls, and payload ip: frames of an end by their sender; those of an unknown one to the controller, too; above, of a vpls: frames on their way out"},
			{Table: TableLabels, Base: PriorityCircuitLabel, Top: PriorityCircuitLabel, Doc: "circuits: the label taken off at the end"},
			{Table: TableLabels, Base: PriorityCircuitProbe, Top: PriorityCircuitProbe, Doc: "circuits: probes, to the controller"},
			{Table: TableLabels, Base: PriorityLANFlood, Top: PriorityLANSelf, Doc: "vpls: frames of an end by their destination; others to all ends, through a meter; payload ip: by their Ethertype"},
		},
		Groups: Range{CircuitGroups, CircuitGroups + 1<<24 - 1},
		Meters: Range{CircuitMeters, CircuitMeters + 1<<16 - 1}},
	{Owner: OwnerHosts, Name: "hosts", Service: "hosts", Stage: true, Standing: true, Observed: true,
		Priorities: []Priorities{
			{Table: TableForward, Base: PriorityListen, Top: PriorityListen, Doc: "packets of a host whose place somebody claims, to the controller, for `hosts.hold`"},
		}},
	{Owner: OwnerBindings, Name: "bindings", Service: "hosts", Standing: true, Observed: true, Policy: true,
		Priorities: []Priorities{
			{Table: TableIngress, Base: PriorityBindingElsewhere, Top: PriorityBindingTrusted, Apps: true,
				Doc: "IP packets whose source is bound to another host or port: dropped; what is bound at its port, and all of ports that are not edge ports: let through"},
		}},
	{Owner: OwnerNeighbours, Name: "neighbours", Service: "hosts", Standing: true, Observed: true,
		Priorities: []Priorities{
			{Table: TableNeighbours, Base: PriorityNeighbour, Top: PriorityNeighbourAsk, Doc: "unicast ARP and ND in which a known host gives its own addresses, at its port: on to the routes; above, what answers `hosts`, to the controller"},
		}},
	{Owner: OwnerChains, Name: "chains", Service: "chain", Standing: true, Observed: true, Policy: true,
		Priorities: []Priorities{
			{Table: TableIngress, Base: PriorityChainForged, Top: PriorityChainBack, Doc: "chains: IP packets that functions send, on; their probes to the controller; tagged packets on their way; forged tags and what else functions send, dropped"},
			{Table: TableForward, Base: PriorityChainReturned, Top: PriorityChainReturnedTop, Doc: "chains: what functions send, by its chain to the next function; what is of none, dropped"},
			{Table: TableForward, Base: PriorityChain, Top: PriorityChainTop, Doc: "chains: packets from edge ports, to the first function"},
			{Table: TableForward, Base: PriorityChainGuard, Top: PriorityChainGuard, Doc: "chains that block: unicast IP in frames to groups, dropped"},
			{Table: TableChains, Base: PriorityChain, Top: PriorityChain, Doc: "chains: by where they are in it and by client, to the next function"},
			{Table: TableDeliver, Base: PriorityChain, Top: PriorityChain, Doc: "chains: to the host"},
		}},
	{Owner: OwnerFirewall, Name: "firewall", Service: "firewall", Stage: true, Standing: true, Observed: true, Policy: true,
		Priorities: []Priorities{
			{Table: TableFirewall, Base: PriorityFirewallLinks, Top: PriorityFirewallLinks, Doc: "links"},
			{Table: TableFirewall, Base: PriorityFirewallBlock, Top: PriorityFirewallBlock, Doc: "what is blocked"},
			{Table: TableFirewall, Base: PriorityFirewallRest + 1, Top: PriorityFirewallBlock - 1, Doc: "the rules, as they have it"},
			{Table: TableFirewall, Base: PriorityFirewallRest, Top: PriorityFirewallRest, Doc: "the rest"},
			{Table: TableIngress, Base: PrioritySingleJudge, Top: PrioritySingleDrop, Apps: true,
				Doc: "on switches with one table: what is denied or allowed"},
		}},
	{Owner: OwnerVerdicts, Name: "verdicts", Service: "firewall",
		Priorities: []Priorities{
			{Table: TableFirewall, Base: PriorityFirewallVerdict, Top: PriorityFirewallVerdict, With: OwnerFirewall,
				Doc: "verdicts on single flows, where there are too many rules for the table"},
		}},
	{Owner: OwnerQoS, Name: "qos", Service: "qos", Standing: true, Observed: true, Policy: true,
		Priorities: []Priorities{
			{Table: TableQoS, Base: 1, Top: PriorityQoS, Doc: "limits, marks, queues, from the highest downwards"},
		},
		Meters: Range{1, QoSMeterMax}},
	{Owner: OwnerSCP, Name: "scp", Service: "scp", Stage: true, Standing: true, Observed: true,
		Priorities: []Priorities{
			{Table: TableTranslate, Base: PriorityProxy, Top: PriorityProxy, Doc: "where scp's front has no host: what is for the NRF, to table 34, for 4 s; what is for the front, to the controller"},
			{Table: TableProxy, Base: PriorityProxy, Top: PriorityProxy, Doc: "what comes from hosts for the NRF, to the controller"},
			{Table: TableForward, Base: PriorityNRFAsk, Top: PriorityNRFAsk, Doc: "ARP and neighbour solicitations between the NRF and its consumers, on"},
			{Table: TableForward, Base: PriorityNRFWay, Top: PriorityNRFWay, Doc: "packets between the NRF and its consumers that have no route, on"},
			{Table: TableProxy, Base: PriorityProxyRest, Top: PriorityProxyRest, Doc: "what else is for the NRF: on"},
			{Table: TableTranslate, Base: PriorityCounted, Top: PriorityCounted, Doc: "connections to producers' own addresses that are allowed, counted: on"},
			{Table: TableTranslate, Base: PriorityDoors, Top: PriorityDoors, Doc: "other TCP of the core: to table 34, for 4 s"},
			{Table: TableProxy, Base: PriorityDoorRest, Top: PriorityDoorPast, Doc: "what comes from hosts for producers' own addresses, to the controller; other TCP, on"},
			{Table: TableIngress, Base: PrioritySingleProxy, Top: PrioritySingleProxy, Apps: true, Doc: "the same on switches with one table"},
			{Table: TableNeighbours, Base: PriorityNeighbourNRF, Top: PriorityNeighbourNRF, Doc: "unicast ARP and ND to or about the address of scp's front without a host: to the controller"},
		}},
	{Owner: OwnerBalancer, Name: "balancer", Service: "balancer", Stage: true, Standing: true, Observed: true, Policy: true,
		Priorities: []Priorities{
			{Table: TableTranslate, Base: PriorityConnection, Top: PriorityConnection, Doc: "single connections"},
			{Table: TableTranslate, Base: PriorityPair, Top: PriorityPair, Doc: "pairs of client and member; what such a client sends to the member's own address, to the controller"},
			{Table: TableTranslate, Base: PriorityBalancerGroup, Top: PriorityShadowMember, Doc: "groups of members; above them, answers to checks; above these, what is for hosts that VIPs shadow, to the controller, or, of VIPs that lapse, to table 34, for 4 s"},
			{Table: TableProxy, Base: PriorityConnection, Top: PriorityConnection, Doc: "single connections of VIPs that lapse"},
			{Table: TableProxy, Base: PriorityPair, Top: PriorityPair, Doc: "their pairs"},
			{Table: TableProxy, Base: PriorityShadow, Top: PriorityShadow, Doc: "what else comes from hosts for the host that such a VIP shadows, to the controller"},
			{Table: TableProxy, Base: PriorityShadowRest, Top: PriorityShadowRest, Doc: "what else is for that host: on"},
			{Table: TableNeighbours, Base: PriorityNeighbourVIP, Top: PriorityNeighbourVIP, Doc: "unicast ARP and ND to or about VIPs: to the controller"},
		},
		Groups: Range{BalancerGroups, BalancerGroups + 1<<28 - 1}},
	{Owner: OwnerRouter, Name: "router", Service: "router", Stage: true, Standing: true, Observed: true, Policy: true,
		Priorities: []Priorities{
			{Table: TableTranslate, Base: PriorityRouted, Top: PriorityRouted + 2*128 + 1, Doc: "where routers' packets go, by the length of the destination's prefix"},
			{Table: TableTranslate, Base: PriorityNotRouted, Top: PriorityRouterOwned, Doc: "above it, from and to addresses that are not routed: dropped; above that, to a router's own address: to the controller"},
			{Table: TableNeighbours, Base: PriorityNeighbourVia, Top: PriorityNeighbourVia, Doc: "unicast ARP and ND to or about routers: to the controller"},
		}},
	{Owner: OwnerNAT, Name: "nat", Service: "nat", Stage: true, Standing: true, Observed: true, Policy: true,
		Priorities: []Priorities{
			{Table: TableTranslate, Base: PriorityNATLeak, Top: PriorityNATNeighbour, Doc: "what is to be translated, and what would get past that: dropped"},
			{Table: TableTracked, Base: PriorityTrackedOut, Top: PriorityTrackedInvalid, Doc: "packets that connection tracking has looked up"},
			{Table: TableNeighbours, Base: PriorityNeighbourNAT, Top: PriorityNeighbourNAT, Doc: "unicast ARP and ND to or about gateways: to the controller"},
		}},
	{Owner: OwnerForwarding, Name: "forwarding", Service: "forwarding", Stage: true, Standing: true, Observed: true,
		Priorities: []Priorities{
			{Table: TableFirewall, Base: PriorityHidden, Top: PriorityHidden, Doc: "frames that hide from the tables what they carry, but not from hosts: dropped"},
			{Table: TableForward, Base: PriorityLinkLocal, Top: PriorityLinkLocal, Doc: "frames of protocols between neighbouring bridges, such as BPDU, LACP and EAPOL: dropped (IEEE 802.1Q §8.6.3)"},
			{Table: TableForward, Base: PriorityLinkFlood, Top: PriorityLinkFlood + 1, Doc: "multicast that comes in by a link: along the tree, or dropped; above, of a virtual network, or of a VLAN that circuits have"},
			{Table: TableNeighbours, Base: PriorityNeighbourLink, Top: PriorityNeighbourLink, Doc: "what comes by a link, and was judged where it came in: on to the routes"},
			{Table: TableNeighbours, Base: PriorityNeighbourOwn, Top: PriorityNeighbourOwn, Doc: "unicast ARP and ND to or about the gateways of `forwarding.subnets`: to the controller"},
			{Table: TableNeighbours, Base: PriorityTrap, Top: PriorityTrap, Doc: "other unicast ARP and ND, to the controller; IGMP, MLD, VRRP, router advertisements, EAPOL and broadcasts with LLC, a copy to the controller"},
			{Table: TableForward, Base: PriorityTrap, Top: PriorityTrap, Doc: "ARP and ND to groups, RARP, DHCP to the controller"},
			{Table: TableForward, Base: PriorityFlood, Top: PriorityFlood + 1, Doc: "multicast from an edge port: along the tree; above, of a virtual network from its members, or of a VLAN that circuits have"},
			{Table: TableForward, Base: PriorityOther, Top: PriorityOther, Doc: "multicast from any other port: dropped; where such ports are many, instead of an entry for each"},
			{Table: TableForward, Base: PriorityMiss, Top: PriorityMiss, Doc: "table miss: to the controller; in the tables before, to the next"},
		},
		Groups: Range{FloodGroups, FloodGroups + 1<<28 - 1}},
	{Owner: OwnerRoutes, Name: "routes", Service: "forwarding", Observed: true,
		Priorities: []Priorities{
			{Table: TableForward, Base: PriorityRoute, Top: PriorityRoute, Doc: "routes between hosts"},
		},
		Groups: Range{1, RouteGroupMax}},
	{Owner: OwnerGuard, Name: "guard", Service: "southbound", Standing: true, Observed: true,
		Priorities: []Priorities{
			{Table: TableNeighbours, Base: PriorityLimitedTrap, Top: PriorityLimitedTrap, Doc: "the traps of a port that floods, through a meter, for 10 s"},
			{Table: TableForward, Base: PriorityLimitedTrap, Top: PriorityLimitedTrap, Doc: "the traps of a port that floods, through a meter, for 10 s"},
			{Table: TableForward, Base: PriorityLimitedMiss, Top: PriorityLimitedMiss, Doc: "the table miss of a port that floods, through a meter, for 10 s"},
		},
		Meters: Range{GuardMeters, GuardMeters + 1<<16 - 1}},
}

// reserved are numbers that owners to come will have, with those of the tables above.
var reserved = []Writer{
	{Owner: 17, Name: "mirrors", Groups: Range{0xc2000000, 0xc2ffffff}},
	{Name: "proxy", Groups: Range{0xc3000000, 0xc3ffffff}, Meters: Range{0x40000, 0x4ffff}},
	{Owner: 20, Name: "slices", Groups: Range{0xe0000000, 0xefffffff}, Meters: Range{0x100000, 0x1fffff}},
}
