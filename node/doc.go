// Package node is what runs beside the switch of a hybrid IP/SDN node: the local
// management entity of the OSHI paper, section IV.A. It keeps the entries by
// which IP routing and the services of a controller live side by side in one
// Open vSwitch bridge, whatever becomes of the bridge and of the controller, and
// has an internal port follow the carrier of its port. Without those entries a
// node whose Open vSwitch was restarted would be dark for ever: its routing, and
// so its controller, are reached through them.
//
// One process does so for all nodes of a machine (Run), as a file says
// (ReadConfig).
//
// cmd/weft imports it, lab for its configuration, and tests. It imports the
// vocabulary of entries, the codec of OpenFlow, and package document, which
// reads its file.
package node
