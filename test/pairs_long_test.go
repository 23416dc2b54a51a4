//go:build long

package test

const everyPair = true
