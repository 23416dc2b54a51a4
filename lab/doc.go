// Package lab makes networks of real switches on one Linux machine: every
// switch is an Open vSwitch bridge, every host a network namespace, every link
// a veth pair or, where it has delay, a cable of two TAP devices. A network is
// a topology.Topology; Up brings it up, Down leaves nothing of it.
//
// Each lab runs its own ovsdb-server and ovs-vswitchd, with its own database
// and in its own network namespace, so several labs run side by side and the
// machine's Open vSwitch, if any, is not touched. The switches connect to any
// OpenFlow controller by its address; the package knows nothing of Weft's.
// Hosts find each other by name. A lab starts programs in them and watches them
// (Host.Run), and gives them a way to the machine (Host.Manage).
//
// A test brings a network up, uses it and takes it down by
//
//	func TestMain(m *testing.M) { keeper.RunIfAsked(); os.Exit(m.Run()) }
//
//	topo, err := topology.Resolve("ring:4")
//	l, err := lab.Up(ctx, topo, lab.Options{Name: "mine", Controllers: []string{"tcp:127.0.0.1:6653"}, KeeperCommand: []string{exe}})
//	defer l.Down(context.Background())
//	result, err := l.Ping(ctx, "h1", "h3", lab.PingOptions{Count: 10})
//	err = l.LinkDown(ctx, "s1", "s2")
//	flows, err := l.OfctlDumpFlows(ctx, "s1")
//
// where exe is os.Executable().
//
// Bringing a lab up needs root; to draw one does not.
//
// Switches may also be hybrid IP/SDN nodes, routers and bridges (Kind): FRR routes
// in a namespace of each node, and package node keeps the nodes' own entries.
//
// cmd/weft and tests may import it. Of Weft it imports package node, and what
// every machine needs.
package lab
