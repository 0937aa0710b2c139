package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.Item;
import io.hawser.client.Units;
import io.hawser.ctl.terminal.BrokerColumn;
import io.hawser.ctl.terminal.LivePicture;
import io.hawser.ctl.terminal.Table;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/** {@code hawserctl gpus}; lists the GPUs without a subcommand. */
@Command(name = "gpus", description = "Lists the GPUs: memory, utilisation, temperature, health. Drains GPUs.",
    synopsisSubcommandLabel = "[COMMAND]",
    subcommands = {GpusCommand.DrainCommand.class, GpusCommand.UndrainCommand.class})
public final class GpusCommand extends ApiCommand {
    private static final String PATH = "/api/v1/gpus";

    @Mixin
    private OneBroker broker;

    @Override
    void run(ApiClient client) {
        print(client.get(broker.query(PATH)), answer -> {
            Table table = new Table(">GPU", "NAME", "UUID", ">MEMORY", ">USED", ">RESERVED", ">UTIL", ">TEMP", ">POWER",
                ">VGPUS", ">SESSIONS", "HEALTH");
            for (Item gpu : Item.list(answer)) {
                table.row(gpu.number("index"), gpu.text("name"), gpu.text("uuid"), Units.size(gpu.number("totalBytes")),
                    gpu.has("memoryUsedBytes") ? Units.size(gpu.number("memoryUsedBytes")) : "-",
                    Units.size(gpu.number("reservedBytes")), LivePicture.figure(gpu, "utilizationPercent", "%"),
                    LivePicture.figure(gpu, "temperatureCelsius", " C"),
                    LivePicture.figure(gpu, "powerWatts", " W"), gpu.number("vgpus"),
                    gpu.number("sessions"), health(gpu));
            }
            return BrokerColumn.add(table, Item.list(answer));
        });
    }

    private static String health(Item gpu) {
        return gpu.text("health") + (gpu.text("drained").equals("true") ? ", drained" : "")
            + (gpu.text("healthDetail").isEmpty() ? "" : ": " + gpu.text("healthDetail"));
    }

    private static String path(String gpu) {
        return PATH + "/" + ApiClient.segment(gpu);
    }

    /** {@code hawserctl gpus drain}. */
    @Command(name = "drain",
        description = "Places no further vGPU on a GPU, and moves its vGPUs with their sessions to "
            + "other GPUs. Fails if a vGPU stays.")
    static final class DrainCommand extends MovingCommand {
        @Parameters(paramLabel = "GPU", description = "Number or UUID.")
        private String gpu;

        @Override
        void run(ApiClient client) {
            drain(client, path(gpu), "GPU", "draining GPU " + gpu);
        }
    }

    /** {@code hawserctl gpus undrain}. */
    @Command(name = "undrain", description = "Allows vGPUs on a GPU again.")
    static final class UndrainCommand extends ApiCommand {
        @Parameters(paramLabel = "GPU", description = "Number or UUID.")
        private String gpu;

        @Override
        void run(ApiClient client) {
            print(client.change("POST", path(gpu) + "/undrain", null), answer -> new Table("FIELD", "VALUE")
                .row("gpu", Item.of(answer).text("gpu")).row("drained", Item.of(answer).text("drained")));
        }
    }
}
