/* The guest's `hawser` command. */
#include "agent.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: hawser COMMAND [...]\n"
    "\n"
    "  run PROGRAM [ARGUMENT...]   runs a CUDA program on the vGPU, whatever its RPATH names or its runtime is\n"
    "  smi [-L] [-q] [--query-gpu=FIELDS --format=csv] [-l SECONDS] [--json] [dmon] ...\n"
    "                              shows the vGPU: its GPUs, memory, and the sessions on it, with nvidia-smi's options\n"
    "  nvidia-smi on|off|status    sets whether this machine has the command nvidia-smi, which is `hawser smi`\n"
    "  doctor [PROGRAM [ARGUMENT...]]\n"
    "                              checks whether this machine, and a program, can use the vGPU; with arguments it runs\n"
    "                              the program and names the libraries that it loads\n"
    "  libraries on|off|auto|status\n"
    "                              sets whether all programs of this machine find Hawser's libraries (ld.so.conf)\n"
    "  preload on|off|status       sets whether all programs redirect a static CUDA runtime at their start\n"
    "  setup [--print]             applies the hypervisor's settings of the vGPU; runs at each start of the machine\n"
    "  --version, --help\n"
    "\n"
    "hawser finds the vGPU as programs do: an ivshmem device, HAWSER_REGION, HAWSER_BROKER and HAWSER_TOKEN_FILE,\n"
    "/etc/hawser/guest.toml, or /run/hawser/guest.toml. See hawser(1).\n";

int main(int argc, char **argv) {
    const char *command = argc < 2 ? "" : argv[1];
    if (hws_agent_is_nvidia_smi(argv[0])) {
        return hws_agent_smi(argc, argv);
    }
    if (strcmp(command, "run") == 0) {
        return hws_agent_run(argc - 1, argv + 1);
    }
    if (strcmp(command, "smi") == 0) {
        return hws_agent_smi(argc - 1, argv + 1);
    }
    if (strcmp(command, "nvidia-smi") == 0) {
        return hws_agent_nvidia_smi(argc - 1, argv + 1);
    }
    if (strcmp(command, "doctor") == 0) {
        return hws_agent_doctor(argc - 1, argv + 1);
    }
    if (strcmp(command, "setup") == 0) {
        return hws_agent_setup(argc - 1, argv + 1);
    }
    if (strcmp(command, "libraries") == 0) {
        return hws_agent_linker(argc - 1, argv + 1);
    }
    if (strcmp(command, "preload") == 0) {
        return hws_agent_preload(argc - 1, argv + 1);
    }
    if (strcmp(command, "--version") == 0 || strcmp(command, "-V") == 0) {
        printf("hawser %s\n", HAWSER_VERSION);
        return HWS_EXIT_OK;
    }
    bool asked = strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0 || strcmp(command, "help") == 0;
    fputs(usage, asked ? stdout : stderr);
    return asked ? HWS_EXIT_OK : HWS_EXIT_USAGE;
}
