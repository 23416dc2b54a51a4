// Package layout is how a lab is laid out on its machine: the names of its bridges,
// namespaces and interfaces, the wires and the ports of its nodes (Lay), the file
// lab.json that says so (Load, Lab.Save), and what an apply has still to do (Task).
//
// It makes nothing of that. The packages of labs import it, and who reads the
// state of links or where a node runs.
package layout
