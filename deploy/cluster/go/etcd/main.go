// The etcd server, built from its module: upstream publishes no main package under its versioned name.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
