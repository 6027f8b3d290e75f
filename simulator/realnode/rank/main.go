// Command rank stands for a program that trains, in images of a few megabytes: it says which rank it is, runs for the time of its argument and ends
// well. Without an argument it runs until it is told to stop, as the container that holds a pod's namespaces does.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	if len(os.Args) < 2 {
		<-stop
		return
	}
	runs, err := time.ParseDuration(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "rank:", err)
		os.Exit(2)
	}
	fmt.Printf("rank %s of %s runs for %s\n", os.Getenv("PET_NODE_RANK"), os.Getenv("PET_NNODES"), runs)
	select {
	case <-time.After(runs):
		fmt.Println("done")
	case <-stop:
		os.Exit(143) // as a shell says of a program that SIGTERM ended
	}
}
